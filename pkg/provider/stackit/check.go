package stackit

import (
	"context"
	"errors"
	"fmt"

	"github.com/zuber-storage/zuber/pkg/provider"
)

// Check is the start-up check: the credentials get an access token, and it may
// work in the project. Where the service is enabled and the admin group exists,
// it mints the process's admin key. It makes nothing else and enables nothing.
// Errors: ErrUnauthenticated and ErrPermissionDenied with the remedy,
// ErrConflict, ErrUnavailable.
func (p *Provider) Check(ctx context.Context) error {
	for _, region := range p.config.Regions {
		if err := p.checkIn(ctx, region); err != nil {
			return fmt.Errorf("stackit check in region %q: %w", region, err)
		}
	}
	return nil
}

func (p *Provider) checkIn(ctx context.Context, region string) error {
	enabled, err := serviceStatus(ctx, p.credentials.get(ctx), region)
	if err != nil || !enabled {
		return err
	}
	g, err := p.adminGroup(ctx, region, false)
	if errors.Is(err, provider.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	a := p.admins[region]
	unlock, err := a.lock.lock(ctx, "")
	if err != nil {
		return err
	}
	defer unlock()
	return p.freshKey(ctx, a, g)
}

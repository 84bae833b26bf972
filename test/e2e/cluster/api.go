package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// ErrNotFound is the API server's answer about what does not exist.
var ErrNotFound = errors.New("not found")

// Get reads an object or a list by its path, such as /api/v1/namespaces.
func (c *Cluster) Get(ctx context.Context, path string) (map[string]any, error) {
	return c.Send(ctx, http.MethodGet, path, nil)
}

// Send makes one call of the API as the administrator. A body that is there goes
// as JSON, for a PATCH as a merge patch.
func (c *Cluster) Send(ctx context.Context, method, path string, body any) (map[string]any, error) {
	var raw []byte
	if body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, c.server+path, bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	var answer map[string]any
	err = json.Unmarshal(text, &answer)
	switch {
	case resp.StatusCode == http.StatusNotFound:
		return nil, fmt.Errorf("%s %s: %w", method, path, ErrNotFound)
	case resp.StatusCode >= http.StatusBadRequest:
		return nil, fmt.Errorf("%s %s: %s: %v", method, path, resp.Status, answer["message"])
	}
	return answer, err
}

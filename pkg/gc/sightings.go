package gc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Sightings says since when resources of unknown age have been seen as orphans, by
// what is deleted together.
type Sightings map[string]time.Time

// since returns when the unit was first seen as an orphan, and remembers now if it
// was not. A sighting in the future is none.
func (s Sightings) since(key string, now time.Time) time.Time {
	if at, ok := s[key]; ok && !at.After(now) {
		return at
	}
	s[key] = now
	return now
}

// keep forgets what is no orphan any more, of the back ends that were read.
func (s Sightings) keep(units []*unit, read map[string]bool) {
	orphans := map[string]bool{}
	for _, u := range units {
		orphans[u.key] = u.verdict != Kept
	}
	for key := range s {
		backend, _, _ := strings.Cut(key, "/")
		if read[backend] && !orphans[key] {
			delete(s, key)
		}
	}
}

// LoadSightings reads what Save wrote. A file that does not exist holds none.
func LoadSightings(path string) (Sightings, error) {
	raw, err := os.ReadFile(path) //nolint:gosec // the user's own file
	if errors.Is(err, fs.ErrNotExist) {
		return Sightings{}, nil
	}
	if err != nil {
		return nil, err
	}
	s := Sightings{}
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("%s holds no sightings: %w; delete it, and ages count anew", path, err)
	}
	return s, nil
}

// Save writes the sightings. A reader finds the old or the new ones, whole.
func (s Sightings) Save(path string) error {
	raw, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = temporary.Write(append(raw, '\n'))
	err = errors.Join(err, temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), path)
	}
	if err != nil {
		_ = os.Remove(temporary.Name())
	}
	return err
}

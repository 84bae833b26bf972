package objectstore

import (
	"encoding/xml"
	"fmt"

	"github.com/zuber-storage/zuber/pkg/emulator/policy"
)

// Settings are the documents that a bucket is configured with, as they are stored;
// "" is none.
type Settings struct {
	Policy            string
	Tagging           string
	PublicAccessBlock string
}

// Settings returns those of a bucket, or ErrNoSuchBucket.
func (s *Store) Settings(name string) (Settings, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buckets[name]
	if b == nil {
		return Settings{}, fmt.Errorf("settings of bucket %s: %w", name, ErrNoSuchBucket)
	}
	all := Settings{Tagging: string(b.config[taggingKind().word])}
	if b.policy != nil {
		all.Policy = string(b.policy.text)
	}
	if b.pab != nil {
		text, err := xml.Marshal(b.pab)
		if err != nil {
			return Settings{}, fmt.Errorf("settings of bucket %s: %w", name, err)
		}
		all.PublicAccessBlock = string(text)
	}
	return all, nil
}

// SetSettings replaces those of a bucket behind everybody's back, at once and whatever
// its policy says, as somebody with other means than S3 could. It returns
// ErrNoSuchBucket, or an error for a document that the endpoint would not take.
func (s *Store) SetSettings(name string, all Settings) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buckets[name]
	if b == nil {
		return fmt.Errorf("settings of bucket %s: %w", name, ErrNoSuchBucket)
	}
	var p *bucketPolicy
	if all.Policy != "" {
		parsed, err := policy.Parse([]byte(all.Policy), s.traits.dialect)
		if err != nil {
			return fmt.Errorf("settings of bucket %s: %w", name, err)
		}
		p = &bucketPolicy{text: []byte(all.Policy), document: parsed}
	}
	var block *publicAccessBlock
	if all.PublicAccessBlock != "" {
		block = &publicAccessBlock{}
		if err := xml.Unmarshal([]byte(all.PublicAccessBlock), block); err != nil {
			return fmt.Errorf("settings of bucket %s: %w", name, err)
		}
		block.XMLName = xml.Name{}
	}
	word := taggingKind().word
	if all.Tagging != "" {
		if _, refused := parseTagging([]byte(all.Tagging), maxBucketTags); refused != nil {
			return fmt.Errorf("settings of bucket %s: the tags are refused with %s", name, refused.code)
		}
		b.config[word] = []byte(all.Tagging)
	} else {
		delete(b.config, word)
	}
	b.policy, b.changes, b.pab = p, []policyChange{{policy: p}}, block
	return nil
}

package objectstore

import (
	"fmt"
	"maps"
	"slices"
)

// BucketState is all that a store holds of a bucket but the bodies of its
// objects, for tests that compare two states. What the store makes up itself,
// such as IDs and times, is not in it.
type BucketState struct {
	BucketInfo
	Versioning        string
	Policy            string            // as it was written; "" is none
	PublicAccessBlock string            // "" is none
	Config            map[string]string // stored documents, "tagging" for example
	ACL               []string          // one line for each grant, sorted
	Versions          []string          // one line for each version or delete marker, by key, newest first
	Uploads           []string          // keys of unfinished uploads, sorted
}

// Inspect returns the state of all buckets, sorted by name.
func (s *Store) Inspect() []BucketState {
	infos := s.Buckets()
	s.mu.Lock()
	defer s.mu.Unlock()
	states := make([]BucketState, 0, len(infos))
	for _, info := range infos {
		if b := s.buckets[info.Name]; b != nil {
			states = append(states, b.inspect(info))
		}
	}
	return states
}

// inspect needs the store's lock.
func (b *bucket) inspect(info BucketInfo) BucketState {
	state := BucketState{BucketInfo: info, Versioning: b.versioning, Config: map[string]string{}}
	if b.policy != nil {
		state.Policy = string(b.policy.text)
	}
	if p := b.pab; p != nil {
		state.PublicAccessBlock = fmt.Sprintf("blockPublicAcls=%t ignorePublicAcls=%t blockPublicPolicy=%t restrictPublicBuckets=%t",
			p.BlockPublicAcls, p.IgnorePublicAcls, p.BlockPublicPolicy, p.RestrictPublicBuckets)
	}
	for word, text := range b.config {
		state.Config[word] = string(text)
	}
	for _, g := range b.acl.grants {
		state.ACL = append(state.ACL, fmt.Sprintf("%s%s %04b", g.uid, g.group, g.perm))
	}
	slices.Sort(state.ACL)
	for _, key := range b.keys {
		for _, v := range b.objects[key] {
			state.Versions = append(state.Versions, fmt.Sprintf("%q deleteMarker=%t bytes=%d owner=%s", key, v.deleteMarker, len(v.data), v.owner.UID))
		}
	}
	for u := range maps.Values(b.uploads) {
		state.Uploads = append(state.Uploads, u.key)
	}
	slices.Sort(state.Uploads)
	return state
}

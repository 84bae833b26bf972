// Package stackit is the provider over STACKIT Object Storage: one credentials
// group for each access, and a policy on each bucket that shuts everyone else
// out.
//
// # Isolation
//
// Every credentials group of a STACKIT project may do everything in every
// bucket that has no policy, so only Deny isolates. A managed bucket always
// carries one: nobody but the admin and the bucket's accesses gets in, and each
// access may do no more than its mode says (modes.go, policy.go). The admin is
// one credentials group for each driver name, project and region; it alone reads
// and writes tags and policies, and its key never leaves the process (admin.go).
//
// # What is remembered, and where
//
// The bucket's tags are the durable truth. They carry the driver's mark, the
// parameters it was made with, and the ledger: for each access the name, ID and
// URN of its credentials group, its mode, and fingerprints of the keys minted
// for it in their order (ledger.go). The policy is always rendered whole from
// the ledger and restored from it when somebody has edited it. Neither the
// policy nor the list of groups would do as the truth: a policy edited by hand
// loses what it said, and the list lags its own writes, names groups but not
// buckets, and holds names that are not unique. Tags are strongly consistent,
// lie with the bucket, and no mode may write them. 50 tags of 256 characters
// hold about as many accesses as fit into the 20,480 bytes of a policy.
//
// Tags and policies have no preconditions: the last writer wins. Each change is
// made under a lock of this process, read back, and repeated if another writer
// won; a grant looks once more before it returns, and every writer leaves a policy
// that was rendered from tags read after it. Several processes may serve one
// driver name at a time, as while one replaces another. Two that grant accesses
// to one bucket in the same fraction of a second may still lose one to the other,
// so let one be active: nothing that the cloud offers can rule that out.
//
// # Several buckets in one access
//
// A group lives in one region and may stand in the ledgers of several buckets
// there. Each of those names all of them by short prints, so that a grant or the
// end of one bucket finds the others with one look at the list of buckets
// (span.go). Those that have the access learn of a new bucket before that bucket
// learns of the access; a ledger may thus name a bucket too many, never one too
// few. A grant works on all of them, under the locks of all: their records of keys
// agree, and a group that somebody has deleted is replaced in every policy at once.
// The group ends with the last bucket that has it. Only when no ledger is left that
// knows, since somebody else deleted the bucket that is named, every bucket of the
// region is read.
//
// # Buckets of somebody else
//
// A bucket without the mark is given access to, if the class asks for it, by
// statements beside those of its owner (existing.go). They are put into the text of
// the policy and cut out of it again, so that every other byte stays, and a bucket
// that had no policy has none in the end (splice.go). What it has of the driver's
// is denials alone: each access is denied what its mode does not allow, the policy
// and the tags above all. Nobody else is denied anything, since the bucket's users
// are not the driver's to know; such a bucket is as open as its owner left it, also
// to the accesses of other buckets. An access that ends there while its key lives
// on for other buckets is kept as a denial of everything until the key is gone:
// without one the key could do more than before.
//
// A Deny of the owner that does not exempt the access cannot be allowed away; the
// grant is refused with the statement and what to add to it (denial.go). It is
// refused after the group is made, because its URN is what must be added.
//
// The ledger lies in the Sids of those statements, in the same words. Tags would be
// the owner's to lose, and they are the mark. A Sid is stored and read back with the
// policy, strongly consistent, and has letters, digits and hyphens only. An entry's
// statement allows the admin what it may do without it and so changes nothing, which
// lets it stand there before its group is made. It is written before the key that it
// records is returned. When an access ends, keys and group go first and the
// statement last: it is the record of what is left to do.
//
// Whoever may write that policy may write the ledger too. So a group is taken from it
// only if the API says that it bears the account's name, and DeleteBucket reads every
// bucket of the region before it believes that this was the last. The policy is read
// again right before each write; what an owner writes between those two calls is
// lost, what they write after it is taken up.
//
// # Nothing is made unannounced
//
// No create call of the API takes a mark, so each creation is announced first.
// An access stands in the ledger before its group is made; a group whose making
// was cut short is then known to be possible, and only then is the lag of the
// list waited out. A bucket is announced by a credentials group without keys
// whose name is derived from driver and bucket; it proves after a crash that an
// untagged, empty bucket without a policy is ours, and is removed once the tags are
// written (claim.go). After a crash within the lag of the list a second one may be
// left; the deletion of the bucket removes it.
//
// # Keys
//
// A secret is readable once. One process returns the same key for a repeated
// grant; after a restart a new one is added. Each key is in the ledger before it
// is returned, so a key outside the ledger was never handed out. When an access
// has more than maxKeys, those outside the ledger go first, then those between
// the oldest, which a v1alpha1 Secret holds for ever, and the newest, which a
// v1alpha2 Secret holds.
package stackit

package clients

import (
	"context"
	"fmt"

	"github.com/minio/minio-go/v7"
)

// rclone is tried with the directions of its S3 backend for a server of no
// known make.
func rclone() client {
	const at = "r:" + bucketName + "/"
	copyto := func(check func(*session) error, args ...string) func(*session) error {
		return func(s *session) error {
			return then(func() error { return s.run(append([]string{"copyto"}, args...)...) }, func() error { return check(s) })
		}
	}
	stored := func(key string, size int) func(*session) error {
		return func(s *session) error { return s.stored(key, size) }
	}
	inParts := func(call, key string) func(*session) error {
		return func(s *session) error {
			return then(func() error { return s.called(call) }, func() error { return s.stored(key, bigSize) })
		}
	}
	flags := func(text string, args ...string) settings {
		return settings{text, func(s *session) { s.flags = append(s.flags, args...) }}
	}
	return client{
		name:    "rclone",
		program: "rclone",
		version: []string{"version"},
		prepare: func(s *session) error {
			s.write("rclone.conf", fmt.Appendf(nil, "[r]\ntype = s3\nprovider = Other\nendpoint = %s\nregion = %s\naccess_key_id = %s\nsecret_access_key = %s\n",
				s.key.endpoint, s.key.region, s.key.accessKey, s.key.secretKey))
			s.env = append(s.env, "RCLONE_CONFIG="+s.dir+"/rclone.conf", "RCLONE_CA_CERT="+s.dir+"/ca.pem",
				"RCLONE_RETRIES=1", "RCLONE_LOW_LEVEL_RETRIES=1", "RCLONE_S3_CHUNK_SIZE=5M")
			return nil
		},
		ladder: func(_ place, g grant) []settings {
			if g.rights != write {
				return nil
			}
			return []settings{
				{},
				flags("`--s3-no-check-bucket`", "--s3-no-check-bucket"),
				flags("`--s3-no-check-bucket --s3-no-head`", "--s3-no-check-bucket", "--s3-no-head"),
				flags("`--s3-no-check-bucket --s3-no-head --no-check-dest`", "--s3-no-check-bucket", "--s3-no-head", "--no-check-dest"),
				flags("`--s3-no-check-bucket --s3-no-head --no-check-dest --no-traverse`", "--s3-no-check-bucket", "--s3-no-head", "--no-check-dest", "--no-traverse"),
			}
		},
		operations: []operation{
			{name: "`copyto` up", needs: write, run: copyto(stored("mine/small.txt", smallSize), "src/small.txt", at+"mine/small.txt")},
			{name: "`copyto` up, in parts", needs: write, alone: true, run: copyto(inParts("CreateMultipartUpload", "mine/big.bin"), "--s3-upload-cutoff=5M", "src/big.bin", at+"mine/big.bin")},
			{name: "`copy` of a directory up", needs: write, alone: true, run: func(s *session) error {
				return then(func() error { return s.run("copy", "src/tree", at+"copied") }, func() error { return s.storedTree("copied/") })
			}},
			{name: "`rcat`", needs: write, alone: true, run: func(s *session) error {
				return then(func() error { return s.pipe(content(smallSize), "rcat", at+"mine/piped") }, func() error { return s.stored("mine/piped", smallSize) })
			}},
			// It looks at what it wrote, in some releases whatever the flags are.
			{name: "`rcat`, in parts", needs: read | write, alone: true, run: func(s *session) error {
				return then(func() error { return s.pipe(content(bigSize), "rcat", at+"mine/piped.bin") }, func() error { return inParts("CreateMultipartUpload", "mine/piped.bin")(s) })
			}},
			{name: "`ls`", needs: list, run: func(s *session) error { return s.prints([]string{hidden}, "ls", at) }},
			{name: "`size`", needs: list, alone: true, run: func(s *session) error {
				return s.prints([]string{`"count":3`, `"bytes":5039`}, "size", "--json", at+"tree")
			}},
			{name: "`copyto` down", needs: read, run: copyto(func(s *session) error { return s.got("got/small.txt", smallSize) }, at+"theirs/small.txt", "got/small.txt")},
			{name: "`copyto` down, 6 MiB", needs: read, alone: true, run: copyto(func(s *session) error { return s.got("got/big.bin", bigSize) }, at+"theirs/big.bin", "got/big.bin")},
			{name: "`cat`", needs: read, alone: true, run: func(s *session) error {
				return then(func() error { return s.run("cat", at+"theirs/small.txt") }, func() error { return same("cat", []byte(s.printed), smallSize) })
			}},
			{name: "`sync` up", needs: list | write, run: func(s *session) error {
				return then(func() error { return s.run("sync", "src/tree", at+"synced") }, func() error { return s.storedTree("synced/") })
			}},
			{name: "`sync` down", needs: list | read, run: func(s *session) error {
				return then(func() error { return s.run("sync", at+"tree", "got/tree") }, func() error { return s.gotTree("got/tree") })
			}},
			{name: "`check`", needs: list | read, alone: true, run: func(s *session) error { return s.run("check", "src/tree", at+"tree") }},
			{name: "`copyto` within the bucket", needs: read | write, run: copyto(stored("mine/copy.bin", bigSize), at+"theirs/big.bin", at+"mine/copy.bin")},
			{name: "`copyto` within the bucket, above `--s3-copy-cutoff`, of its own object", needs: read | write, own: true,
				alone: true, run: copyto(inParts("UploadPartCopy", "mine/copied.bin"), "--s3-copy-cutoff=5M", at+"mine/big.bin", at+"mine/copied.bin")},
			{name: "`copyto` within the bucket, above `--s3-copy-cutoff`, of another's object", needs: read | write, caveat: true,
				alone: true, run: copyto(inParts("UploadPartCopy", "mine/taken.bin"), "--s3-copy-cutoff=5M", at+"theirs/big.bin", at+"mine/taken.bin")},
			{name: "`deletefile`", needs: remove | read, run: func(s *session) error {
				return then(func() error { return s.run("deletefile", at+"delete/one/1") }, func() error { return s.gone("delete/one/1") })
			}},
			{name: "`delete`", needs: list | remove, run: func(s *session) error {
				return then(func() error { return s.run("delete", at+"delete/batch") }, func() error { return s.gone(doomed("delete/batch/")...) })
			}},
			{name: "`purge`", needs: list | remove, alone: true, run: func(s *session) error {
				return then(func() error { return s.run("purge", at+"delete/tree") }, func() error { return s.gone(doomed("delete/tree/")...) })
			}},
			{name: "`cleanup`", needs: list | write | remove, alone: true, run: cleanUp},
			{name: "a bucket of its own: `mkdir`, `lsd`, `rmdir`", needs: list | read | write | remove, alone: true, caveat: true, run: func(s *session) error {
				return then(func() error { return s.run("mkdir", "r:"+ownBucket) },
					func() error { return s.prints([]string{ownBucket}, "lsd", "r:") },
					func() error { return s.run("rmdir", "r:"+ownBucket) })
			}},
		},
	}
}

// cleanUp has an unfinished upload removed.
func cleanUp(s *session) error {
	if _, err := s.other.NewMultipartUpload(s.t.Context(), bucketName, "unfinished", minio.PutObjectOptions{}); err != nil {
		return err
	}
	return then(
		func() error { return s.run("backend", "cleanup", "r:"+bucketName, "-o", "max-age=0s") },
		func() error { return s.noUploads(s.t.Context()) })
}

func (s *session) noUploads(ctx context.Context) error {
	for up := range s.other.ListIncompleteUploads(ctx, bucketName, "", true) {
		return fmt.Errorf("the upload of %q is still there (%w)", up.Key, up.Err)
	}
	return nil
}

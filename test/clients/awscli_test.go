package clients

import (
	"fmt"
	"strings"
)

// awsCLI is aws cli, which is built on the AWS SDK for Python.
func awsCLI() client {
	const at = "s3://" + bucketName + "/"
	cp := func(from, to string, check func(*session) error) func(*session) error {
		return func(s *session) error {
			return then(func() error { return s.run("s3", "cp", from, to) }, func() error { return check(s) })
		}
	}
	inParts := func(call string, key string) func(*session) error {
		return func(s *session) error {
			return then(func() error { return s.called(call) }, func() error { return s.stored(key, bigSize) })
		}
	}
	return client{
		name:    "aws cli",
		program: "aws",
		version: []string{"--version"},
		prepare: func(s *session) error {
			s.write(".aws/config", fmt.Appendf(nil, "[default]\nregion = %s\ns3 =\n  addressing_style = path\n  multipart_threshold = 5MB\n  multipart_chunksize = 5MB\n", s.key.region))
			s.env = append(s.env, "AWS_ACCESS_KEY_ID="+s.key.accessKey, "AWS_SECRET_ACCESS_KEY="+s.key.secretKey, "AWS_CA_BUNDLE=ca.pem",
				"AWS_EC2_METADATA_DISABLED=true", "AWS_PAGER=", "AWS_MAX_ATTEMPTS=1")
			s.flags = []string{"--endpoint-url", s.key.endpoint}
			return nil
		},
		// Older releases add no checksums and do not know the variables; newer ones
		// need them, as the row of the SDK shows.
		ladder: func(p place, _ grant) []settings {
			if !p.grid {
				return nil
			}
			const request, response = "AWS_REQUEST_CHECKSUM_CALCULATION=when_required", "AWS_RESPONSE_CHECKSUM_VALIDATION=when_required"
			return []settings{{"`" + request + " " + response + "`", func(s *session) { s.env = append(s.env, request, response) }}}
		},
		operations: []operation{
			{name: "`s3 cp` up", needs: write, run: cp("src/small.txt", at+"mine/small.txt", func(s *session) error { return s.stored("mine/small.txt", smallSize) })},
			{name: "`s3 cp` up, in parts", needs: write, alone: true, run: cp("src/big.bin", at+"mine/big.bin", inParts("CreateMultipartUpload", "mine/big.bin"))},
			{name: "`s3 ls`", needs: list, run: func(s *session) error { return s.prints([]string{"only-a-list-shows-me"}, "s3", "ls", at+"theirs/") }},
			{name: "`s3 cp` down", needs: read, run: cp(at+"theirs/small.txt", "got/small.txt", func(s *session) error { return s.got("got/small.txt", smallSize) })},
			{name: "`s3 cp` down, in parts", needs: read, alone: true, run: cp(at+"theirs/big.bin", "got/big.bin", func(s *session) error { return s.got("got/big.bin", bigSize) })},
			{name: "`s3 presign`", needs: read, alone: true, run: func(s *session) error {
				return then(func() error { return s.run("s3", "presign", at+"theirs/small.txt") },
					func() error { return s.fetch(strings.TrimSpace(s.printed), "theirs/small.txt") })
			}},
			{name: "`s3 sync` up", needs: list | write, run: func(s *session) error {
				return then(
					func() error { return s.run("s3", "sync", "src/tree", at+"synced") },
					func() error { return s.storedTree("synced/") },
					func() error { return s.run("s3", "sync", "src/tree", at+"synced") },
					func() error { return idle(s.printed) })
			}},
			{name: "`s3 sync` down", needs: list | read, run: func(s *session) error {
				return then(func() error { return s.run("s3", "sync", at+"tree", "got/tree") }, func() error { return s.gotTree("got/tree") })
			}},
			{name: "`s3 cp` within the bucket", needs: read | write, run: cp(at+"theirs/small.txt", at+"mine/copy", func(s *session) error { return s.stored("mine/copy", smallSize) })},
			{name: "`s3 cp` within the bucket, in parts, of its own object", needs: read | write, own: true,
				alone: true, run: cp(at+"mine/big.bin", at+"mine/copy.bin", inParts("UploadPartCopy", "mine/copy.bin"))},
			{name: "`s3 cp` within the bucket, in parts, of another's object", needs: read | write, caveat: true,
				alone: true, run: cp(at+"theirs/big.bin", at+"mine/taken.bin", func(s *session) error { return s.stored("mine/taken.bin", bigSize) }),
				otherwise: &settings{"`s3.multipart_threshold` = `5GB`", func(s *session) {
					s.write(".aws/one-part", fmt.Appendf(nil, "[default]\nregion = %s\ns3 =\n  addressing_style = path\n  multipart_threshold = 5GB\n", s.key.region))
					s.env = append(s.env, "AWS_CONFIG_FILE="+s.dir+"/.aws/one-part")
				}}},
			{name: "`s3 rm`", needs: remove, run: func(s *session) error {
				return then(func() error { return s.run("s3", "rm", at+"delete/one/1") }, func() error { return s.gone("delete/one/1") })
			}},
			{name: "`s3api delete-objects`", needs: remove, run: func(s *session) error {
				keys := `{"Objects":[{"Key":"delete/batch/1"},{"Key":"delete/batch/2"},{"Key":"delete/batch/3"}]}`
				return then(func() error { return s.run("s3api", "delete-objects", "--bucket", bucketName, "--delete", keys) },
					func() error { return s.gone(doomed("delete/batch/")...) })
			}},
			{name: "`s3 rm --recursive`", needs: list | remove, alone: true, run: func(s *session) error {
				return then(func() error { return s.run("s3", "rm", "--recursive", at+"delete/tree") }, func() error { return s.gone(doomed("delete/tree/")...) })
			}},
			{name: "a bucket of its own: `s3 mb`, `s3 ls`, `s3 rb`", needs: list | read | write | remove, alone: true, caveat: true, run: func(s *session) error {
				return then(func() error { return s.run("s3", "mb", "s3://"+ownBucket) },
					func() error { return s.prints([]string{ownBucket}, "s3", "ls") },
					func() error { return s.run("s3", "rb", "s3://"+ownBucket) })
			}},
		},
	}
}

// idle fails if a second run of a sync found something to do.
func idle(printed string) error {
	if printed != "" {
		return fmt.Errorf("a second sync is not idle: %s", printed)
	}
	return nil
}

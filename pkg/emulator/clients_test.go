package emulator_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/minio/minio-go/v7"
)

func TestAWSCLI(t *testing.T) {
	withClient(t, "aws", func(c *tool) {
		c.write(".aws/config", []byte("[default]\nregion = us-east-1\ns3 =\n  addressing_style = path\n"))
		c.env = append(c.env, "AWS_ACCESS_KEY_ID="+c.accessKey, "AWS_SECRET_ACCESS_KEY="+c.secretKey,
			"AWS_EC2_METADATA_DISABLED=true", "AWS_PAGER=", "AWS_MAX_ATTEMPTS=1")
		c.sourceTree()
		aws := func(args ...string) string { return c.run(append([]string{"--endpoint-url", c.endpoint}, args...)...) }
		const at = "s3://" + bucketName + "/"

		if c.isOwner {
			c.contains(aws("s3", "ls"), bucketName)
			aws("s3", "mb", "s3://another")
			aws("s3", "rb", "s3://another")
		}
		aws("s3", "cp", "src/small.txt", at+"one/small.txt")
		aws("s3", "cp", "src/big.bin", at+"one/big.bin")
		c.called("CreateMultipartUpload")
		c.contains(aws("s3", "ls", at+"one/"), "39 small.txt", "20971520 big.bin")
		aws("s3", "cp", at+"one/small.txt", "got/small.txt")
		aws("s3", "cp", at+"one/big.bin", "got/big.bin")
		c.write("want/small.txt", content(39))
		c.write("want/big.bin", content(20<<20))
		c.sameTrees("want", "got")

		aws("s3", "sync", "src", at+"tree")
		aws("s3", "sync", at+"tree", "synced")
		c.sameTrees("src", "synced")
		if again := aws("s3", "sync", "src", at+"tree"); again != "" {
			c.t.Errorf("a second sync is not idle: %s", again)
		}
		aws("s3", "cp", at+"one/small.txt", at+"copy.txt")
		c.objects(7)
		aws("s3", "rm", at+"copy.txt")
		c.objects(6)
		aws("s3api", "delete-objects", "--bucket", bucketName, "--delete", `{"Objects":[{"Key":"one/small.txt"},{"Key":"one/missing"}]}`)
		c.objects(5)
		aws("s3", "rm", "--recursive", at)
		c.objects(0)
	})
}

func TestRclone(t *testing.T) {
	withClient(t, "rclone", func(c *tool) {
		c.write("rclone.conf", fmt.Appendf(nil, "[r]\ntype = s3\nprovider = Ceph\nendpoint = %s\naccess_key_id = %s\nsecret_access_key = %s\n",
			c.endpoint, c.accessKey, c.secretKey))
		c.env = append(c.env, "RCLONE_CONFIG="+filepath.Join(c.dir, "rclone.conf"), "RCLONE_RETRIES=1", "RCLONE_LOW_LEVEL_RETRIES=1")
		c.sourceTree()
		const at = "r:" + bucketName

		if c.isOwner {
			c.run("mkdir", "r:another")
			c.contains(c.run("lsd", "r:"), "another", bucketName)
			c.run("rmdir", "r:another")
		}
		c.run("copy", "src", at+"/tree")
		c.contains(c.run("ls", at), "39 tree/small.txt", "20971520 tree/big.bin")
		c.run("check", "src", at+"/tree")
		c.run("copy", at+"/tree", "got")
		c.sameTrees("src", "got")
		c.contains(c.run("size", "--json", at), `"count":4`, `"bytes":20976559`)

		c.pipe(content(39), "rcat", at+"/rcat/small")
		c.pipe(content(20<<20), "rcat", at+"/rcat/big")
		c.called("CreateMultipartUpload")
		for name, size := range map[string]int{"small": 39, "big": 20 << 20} {
			if got := c.run("cat", at+"/rcat/"+name); got != string(content(size)) {
				c.t.Errorf("cat of %s: %d bytes differ from the %d sent", name, len(got), size)
			}
		}
		c.objects(6)

		core := minio.Core{Client: c.owner}
		if _, err := core.NewMultipartUpload(c.t.Context(), bucketName, "unfinished", minio.PutObjectOptions{}); err != nil {
			c.t.Fatal(err)
		}
		c.run("cleanup", at)
		c.run("backend", "cleanup", at, "-o", "max-age=0s")
		for up := range c.owner.ListIncompleteUploads(c.t.Context(), bucketName, "", true) {
			c.t.Errorf("after the clean-up: upload %q, %v", up.Key, up.Err)
		}

		c.run("deletefile", at+"/rcat/small")
		c.objects(5)
		c.run("delete", at)
		c.objects(0)
	})
}

func TestS3cmd(t *testing.T) {
	withClient(t, "s3cmd", func(c *tool) {
		c.write("s3cfg", fmt.Appendf(nil, "[default]\nhost_base = %[1]s\nhost_bucket = %[1]s\nuse_https = False\naccess_key = %[2]s\nsecret_key = %[3]s\nmax_retries = 1\n",
			c.host, c.accessKey, c.secretKey))
		c.sourceTree()
		s3cmd := func(args ...string) string {
			return c.run(append([]string{"-c", "s3cfg", "--no-progress"}, args...)...)
		}
		const at = "s3://" + bucketName + "/"

		if c.isOwner {
			s3cmd("mb", "s3://another")
			c.contains(s3cmd("ls"), "s3://another", "s3://"+bucketName)
			s3cmd("rb", "s3://another")
			c.contains(s3cmd("info", "s3://"+bucketName), "Location:", "FULL_CONTROL")
		}
		s3cmd("put", "src/small.txt", at+"small.txt")
		s3cmd("put", "src/big.bin", at+"big.bin")
		c.called("CreateMultipartUpload")
		s3cmd("put", "--recursive", "src/sub", at)
		c.contains(s3cmd("ls", "--recursive", at), "39  "+at+"small.txt", "20971520  "+at+"big.bin", at+"sub/a b+c%20&=ü.txt")
		c.objects(3)
		c.write("got/small.txt", []byte("to be replaced"))
		s3cmd("get", "--recursive", "--force", at, "got/")
		for path, size := range map[string]int{"small.txt": 39, "sub/a b+c%20&=ü.txt": 5000, "big.bin": 20 << 20} {
			c.write("want/"+path, content(size))
		}
		c.sameTrees("want", "got")
		s3cmd("del", at+"small.txt")
		c.objects(2)
		s3cmd("del", "--recursive", "--force", at)
		c.objects(0)
	})
}

func TestRestic(t *testing.T) {
	withClient(t, "restic", func(c *tool) {
		bucket := bucketName
		if c.isOwner {
			bucket = "another" // restic makes it
		}
		c.env = append(c.env, "AWS_ACCESS_KEY_ID="+c.accessKey, "AWS_SECRET_ACCESS_KEY="+c.secretKey,
			"RESTIC_REPOSITORY=s3:"+c.endpoint+"/"+bucket+"/repo", "RESTIC_PASSWORD=test")
		c.sourceTree()
		restic := func(args ...string) string {
			return c.run(append([]string{"--option", "s3.bucket-lookup=path", "--no-cache"}, args...)...)
		}
		snapshots := func(want int) {
			c.t.Helper()
			var list []struct {
				ID string `json:"id"`
			}
			out := restic("snapshots", "--json")
			if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != want {
				c.t.Errorf("want %d snapshots: %v\n%s", want, err, out)
			}
		}

		restic("init")
		restic("backup", "src")
		c.write("src/more.txt", content(100))
		restic("backup", "src")
		snapshots(2)
		restic("check", "--read-data")
		restic("forget", "--keep-last", "1", "--prune")
		snapshots(1)
		restic("check", "--read-data")
		restic("restore", "latest", "--target", "restored")
		c.sameTrees("src", "restored/src")
		restic("unlock")
	})
}

package emulator

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/zuber-storage/zuber/pkg/emulator/objectstore"
)

// stackitBucket is what lists know of a bucket.
type stackitBucket struct {
	name   string
	locked bool
}

type stackitBucketBody struct {
	Name                  string `json:"name"`
	Region                string `json:"region"`
	URLPathStyle          string `json:"urlPathStyle"`
	URLVirtualHostedStyle string `json:"urlVirtualHostedStyle"`
	ObjectLockEnabled     bool   `json:"objectLockEnabled"`
}

type stackitBucketsBody struct {
	Project string              `json:"project"`
	Buckets []stackitBucketBody `json:"buckets"`
}

type stackitBucketOneBody struct {
	Project string            `json:"project"`
	Bucket  stackitBucketBody `json:"bucket"`
}

// stackitBucketNameBody answers a creation and a deletion.
type stackitBucketNameBody struct {
	Project string `json:"project"`
	Bucket  string `json:"bucket"`
}

func (c *Stackit) bucketBody(region string, b stackitBucket) stackitBucketBody {
	scheme, host, _ := strings.Cut(c.Endpoints[region], "://")
	port := host[strings.LastIndex(host, ":")+1:]
	return stackitBucketBody{
		Name: b.name, Region: region, ObjectLockEnabled: b.locked,
		URLPathStyle:          c.Endpoints[region] + "/" + b.name,
		URLVirtualHostedStyle: scheme + "://" + b.name + "." + c.Domains[region] + ":" + port,
	}
}

func noBucket() stackitReply {
	return stackitProblem(http.StatusNotFound, "bucket.not_found", "The bucket could not be found")
}

// syncBuckets takes over what was made and deleted through S3. It needs mu.
func (c *Stackit) syncBuckets(t *stackitTenant) {
	now := c.now()
	store := c.stores[t.region]
	names := store.OwnedBuckets(t.account)
	for _, name := range t.bucketList.existing() {
		if _, found := slices.BinarySearch(names, name); !found {
			t.bucketList.remove(name, now)
		}
	}
	for _, name := range names {
		if t.bucketList.exists(name) {
			continue
		}
		if lock, err := store.BucketLock(name, t.account); err == nil {
			t.bucketList.add(name, stackitBucket{name, lock.Enabled}, now)
		}
	}
}

func (c *Stackit) listBuckets(call *stackitCall) stackitReply {
	return c.withTenant(call.stackitScope, func(t *stackitTenant) stackitReply {
		c.syncBuckets(t)
		body := stackitBucketsBody{Project: t.project, Buckets: []stackitBucketBody{}}
		for _, b := range t.bucketList.at(c.now()) {
			body.Buckets = append(body.Buckets, c.bucketBody(t.region, b))
		}
		return stackitReply{http.StatusOK, body}
	})
}

func (c *Stackit) createBucket(call *stackitCall) stackitReply {
	locked := false
	if q := call.URL.Query(); q.Has("objectLockEnabled") {
		var err error
		if locked, err = strconv.ParseBool(q.Get("objectLockEnabled")); err != nil {
			return stackitProblem(http.StatusUnprocessableEntity, "request.invalid", "objectLockEnabled is not a boolean")
		}
	}
	return c.withTenant(call.stackitScope, func(t *stackitTenant) stackitReply {
		if locked && !t.complianceLock {
			return stackitProblem(http.StatusConflict, "bucket.no_compliance_lock", "Object lock needs a compliance lock on the project")
		}
		c.syncBuckets(t)
		err := c.stores[t.region].CreateBucketAs(t.region, call.id, objectstore.Identity{UID: t.account, DisplayName: t.project}, locked)
		switch {
		case errors.Is(err, objectstore.ErrInvalidBucketName):
			return stackitProblem(http.StatusUnprocessableEntity, "bucket.invalid_name", "The bucket name is not valid")
		case errors.Is(err, objectstore.ErrBucketExists):
			return stackitProblem(http.StatusConflict, "bucket.already_exists", "A bucket with this name already exists")
		case err != nil:
			return stackitProblem(http.StatusInternalServerError, "internal", "%v", err)
		}
		t.bucketList.add(call.id, stackitBucket{call.id, locked}, c.seenBy())
		return stackitReply{http.StatusCreated, stackitBucketNameBody{t.project, call.id}}
	})
}

func (c *Stackit) getBucket(call *stackitCall) stackitReply {
	if refusal := stringOfLength(call.id, 3, 63, "path", "bucketName"); refusal != nil {
		return *refusal
	}
	return c.withTenant(call.stackitScope, func(t *stackitTenant) stackitReply {
		lock, err := c.stores[t.region].BucketLock(call.id, t.account)
		if err != nil {
			return noBucket()
		}
		return stackitReply{http.StatusOK, stackitBucketOneBody{t.project, c.bucketBody(t.region, stackitBucket{call.id, lock.Enabled})}}
	})
}

// deleteBucket asks no bucket policy: the control plane manages all buckets of
// the account.
func (c *Stackit) deleteBucket(call *stackitCall) stackitReply {
	return c.withTenant(call.stackitScope, func(t *stackitTenant) stackitReply {
		c.syncBuckets(t)
		err := c.stores[t.region].DeleteBucketAs(call.id, t.account)
		switch {
		case errors.Is(err, objectstore.ErrBucketNotEmpty):
			return stackitProblem(c.options.NotEmptyStatus, "bucket.not_empty", "The bucket is not empty")
		case err != nil:
			return noBucket()
		}
		t.bucketList.remove(call.id, c.seenBy())
		return stackitReply{http.StatusOK, stackitBucketNameBody{t.project, call.id}}
	})
}

type defaultRetentionBody struct {
	Project string `json:"project"`
	Bucket  string `json:"bucket"`
	Mode    string `json:"mode"`
	Days    int    `json:"days"`
}

// withLockedBucket runs do on a bucket that can have a default retention.
func (c *Stackit) withLockedBucket(call *stackitCall, do func(*stackitTenant, objectstore.ObjectLock) stackitReply) stackitReply {
	return c.withTenant(call.stackitScope, func(t *stackitTenant) stackitReply {
		lock, err := c.stores[t.region].BucketLock(call.id, t.account)
		switch {
		case err != nil:
			return noBucket()
		case !t.complianceLock:
			return noComplianceLock(http.StatusConflict)
		case !lock.Enabled:
			return stackitProblem(http.StatusNotFound, "bucket.no_object_lock", "The bucket has no object lock")
		}
		return do(t, lock)
	})
}

func (c *Stackit) setDefaultRetention(call *stackitCall) stackitReply {
	var in struct {
		Mode string `json:"mode"`
		Days int    `json:"days"`
	}
	bad := func(msg string) stackitReply {
		return stackitProblem(http.StatusBadRequest, "default_retention.invalid", "%s", msg)
	}
	members, refusal := readStackitBody(call.Request)
	if refusal != nil {
		// 422 is not declared for this operation.
		return bad("The request body is not valid")
	}
	if json.Unmarshal(members["mode"], &in.Mode) != nil || (in.Mode != "COMPLIANCE" && in.Mode != "GOVERNANCE") {
		return bad("The mode must be COMPLIANCE or GOVERNANCE")
	}
	if json.Unmarshal(members["days"], &in.Days) != nil || in.Days < 1 || in.Days > maxRetentionDays {
		return bad("The days must be from 1 to " + strconv.Itoa(maxRetentionDays))
	}
	return c.withLockedBucket(call, func(t *stackitTenant, _ objectstore.ObjectLock) stackitReply {
		retention := objectstore.DefaultRetention{Mode: in.Mode, Days: in.Days}
		if err := c.stores[t.region].SetDefaultRetention(call.id, t.account, retention); err != nil {
			return noBucket()
		}
		return stackitReply{http.StatusOK, defaultRetentionBody{t.project, call.id, in.Mode, in.Days}}
	})
}

func noDefaultRetention() stackitReply {
	return stackitProblem(http.StatusNotFound, "default_retention.not_found", "The bucket has no default retention")
}

func (c *Stackit) getDefaultRetention(call *stackitCall) stackitReply {
	return c.withLockedBucket(call, func(t *stackitTenant, lock objectstore.ObjectLock) stackitReply {
		r := lock.DefaultRetention
		if r.Mode == "" {
			return noDefaultRetention()
		}
		// Only S3 sets years; this API knows days alone.
		return stackitReply{http.StatusOK, defaultRetentionBody{t.project, call.id, r.Mode, r.Days + 365*r.Years}}
	})
}

func (c *Stackit) deleteDefaultRetention(call *stackitCall) stackitReply {
	return c.withLockedBucket(call, func(t *stackitTenant, lock objectstore.ObjectLock) stackitReply {
		if lock.DefaultRetention.Mode == "" {
			return noDefaultRetention()
		}
		if err := c.stores[t.region].SetDefaultRetention(call.id, t.account, objectstore.DefaultRetention{}); err != nil {
			return noBucket()
		}
		return stackitReply{http.StatusOK, stackitBucketNameBody{t.project, call.id}}
	})
}

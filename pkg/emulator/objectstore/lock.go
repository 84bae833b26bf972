package objectstore

import (
	"net/http"
	"strings"
	"time"
)

const (
	modeGovernance = "GOVERNANCE"
	modeCompliance = "COMPLIANCE"
)

// objectLock is the lock configuration of a bucket that was made with object lock.
type objectLock struct {
	rule *defaultRetentionXML
}

// retention keeps a version until a time; no mode means none.
type retention struct {
	mode  string
	until time.Time
}

func (r retention) active(now time.Time) bool {
	return r.mode != "" && now.Before(r.until)
}

// lockFromHeaders reads the lock headers of a write, or else applies the bucket's default.
func (q *request) lockFromHeaders() (retention, bool, *apiError) {
	h := q.http.Header
	mode, until, hold := h.Get("X-Amz-Object-Lock-Mode"), h.Get("X-Amz-Object-Lock-Retain-Until-Date"), h.Get("X-Amz-Object-Lock-Legal-Hold")
	if q.bucket.lock == nil {
		if mode+until+hold != "" {
			return retention{}, false, errInvalidRequest("bucket object lock not configured")
		}
		return retention{}, false, nil
	}
	if hold != "" && hold != "ON" && hold != "OFF" {
		return retention{}, false, errInvalidArgument("")
	}
	if mode == "" && until == "" {
		return q.bucket.lock.byDefault(q.now), hold == "ON", nil
	}
	r, err := parseRetention(mode, until, q.now)
	return r, hold == "ON", err
}

func parseRetention(mode, until string, now time.Time) (retention, *apiError) {
	t, err := time.Parse(time.RFC3339Nano, until)
	if err != nil || (mode != modeGovernance && mode != modeCompliance) || !t.After(now) {
		return retention{}, errInvalidArgument("")
	}
	return retention{mode: mode, until: t}, nil
}

func (l *objectLock) byDefault(now time.Time) retention {
	if l.rule == nil {
		return retention{}
	}
	return retention{mode: l.rule.Mode, until: now.AddDate(l.rule.Years, 0, l.rule.Days)}
}

func (v *version) addLockHeaders(h http.Header) {
	if v.retention.mode != "" {
		h.Set("X-Amz-Object-Lock-Mode", v.retention.mode)
		h.Set("X-Amz-Object-Lock-Retain-Until-Date", isoTime(v.retention.until))
	}
	if v.legalHold {
		h.Set("X-Amz-Object-Lock-Legal-Hold", "ON")
	}
}

// bypass tells whether the request asks to override governance retention and no policy forbids it.
func (q *request) bypass(resource string) bool {
	asked := strings.EqualFold(q.http.Header.Get("X-Amz-Bypass-Governance-Retention"), "true")
	return asked && q.allow(q.bucket, "s3:BypassGovernanceRetention", resource, func() bool { return true }) == nil
}

// checkLock refuses to remove or to shorten the retention of a version that is held.
func (v *version) checkLock(now time.Time, bypass bool) *apiError {
	held := v.legalHold
	if v.retention.active(now) {
		held = held || v.retention.mode == modeCompliance || !bypass
	}
	if held {
		return failure(http.StatusForbidden, "AccessDenied", "forbidden by object lock")
	}
	return nil
}

func (q *request) getObjectLockConfiguration() (*reply, *apiError) {
	if err := q.allowBucket("s3:GetBucketObjectLockConfiguration"); err != nil {
		return nil, err
	}
	if q.bucket.lock == nil {
		return nil, failure(http.StatusNotFound, "ObjectLockConfigurationNotFoundError", "")
	}
	return document(objectLockXML{NS: xmlns, Enabled: versioningEnabled, Default: q.bucket.lock.rule})
}

func (q *request) putObjectLockConfiguration() (*reply, *apiError) {
	if err := q.allowBucket("s3:PutBucketObjectLockConfiguration"); err != nil {
		return nil, err
	}
	if q.bucket.lock == nil {
		return nil, failure(http.StatusConflict, "InvalidBucketState", "")
	}
	if q.bodyErr != nil {
		return nil, q.bodyErr
	}
	var in objectLockXML
	if err := parseDocument(q.body, &in); err != nil {
		return nil, err
	}
	if rule := in.Default; rule != nil {
		knownMode := rule.Mode == modeGovernance || rule.Mode == modeCompliance
		if !knownMode || rule.Days < 0 || rule.Years < 0 || (rule.Days == 0) == (rule.Years == 0) {
			return nil, errMalformedXML()
		}
	}
	if in.Enabled != versioningEnabled {
		return nil, errMalformedXML()
	}
	q.bucket.lock.rule = in.Default
	return empty(http.StatusOK), nil
}

// lockedObject finds the version that a retention or legal-hold request means.
func (q *request) lockedObject(action string) (*version, *apiError) {
	v, err := q.object(action)
	if err != nil {
		return nil, err
	}
	if q.bucket.lock == nil {
		return nil, errInvalidRequest("bucket object lock not configured")
	}
	return v, nil
}

func (q *request) getObjectRetention() (*reply, *apiError) {
	v, err := q.lockedObject("s3:GetObjectRetention")
	if err != nil {
		return nil, err
	}
	if v.retention.mode == "" {
		return nil, failure(http.StatusNotFound, "NoSuchObjectLockConfiguration", "")
	}
	return document(retentionXML{NS: xmlns, Mode: v.retention.mode, Until: isoTime(v.retention.until)})
}

func (q *request) putObjectRetention() (*reply, *apiError) {
	v, err := q.lockedObject("s3:PutObjectRetention")
	if err != nil {
		return nil, err
	}
	if q.bodyErr != nil {
		return nil, q.bodyErr
	}
	var in retentionXML
	if err := parseDocument(q.body, &in); err != nil {
		return nil, err
	}
	r, err := parseRetention(in.Mode, in.Until, q.now)
	if err != nil {
		return nil, err
	}
	weaker := r.until.Before(v.retention.until) || (v.retention.mode == modeCompliance && r.mode != modeCompliance)
	if v.retention.active(q.now) && weaker {
		compliant := v.retention.mode == modeCompliance
		if compliant || !q.bypass(q.bucket.arn(q.target.key)) {
			return nil, failure(http.StatusForbidden, "AccessDenied", "proposed retain-until date shortens an existing retention period")
		}
	}
	v.retention = r
	return empty(http.StatusOK), nil
}

func (q *request) getObjectLegalHold() (*reply, *apiError) {
	v, err := q.lockedObject("s3:GetObjectLegalHold")
	if err != nil {
		return nil, err
	}
	status := "OFF"
	if v.legalHold {
		status = "ON"
	}
	return document(legalHoldXML{NS: xmlns, Status: status})
}

func (q *request) putObjectLegalHold() (*reply, *apiError) {
	v, err := q.lockedObject("s3:PutObjectLegalHold")
	if err != nil {
		return nil, err
	}
	if q.bodyErr != nil {
		return nil, q.bodyErr
	}
	var in legalHoldXML
	if err := parseDocument(q.body, &in); err != nil {
		return nil, err
	}
	if in.Status != "ON" && in.Status != "OFF" {
		return nil, errMalformedXML()
	}
	v.legalHold = in.Status == "ON"
	return empty(http.StatusOK), nil
}

package emulator

import (
	"net/http"
)

// maxRetentionDays is the longest retention a compliance lock allows.
const maxRetentionDays = 365

type stackitStatusBody struct {
	Project string `json:"project"`
	Scope   string `json:"scope"`
}

func stackitStatus(status int, project string) stackitReply {
	return stackitReply{status, stackitStatusBody{project, "PUBLIC"}}
}

func (c *Stackit) getServiceStatus(call *stackitCall) stackitReply {
	return c.withTenant(call.stackitScope, func(t *stackitTenant) stackitReply {
		return stackitStatus(http.StatusOK, t.project)
	})
}

// enableService is idempotent in sequence. While one call makes the project,
// every other one is a conflict.
func (c *Stackit) enableService(call *stackitCall) stackitReply {
	begin := func() (t *stackitTenant, done *stackitReply) {
		c.mu.Lock()
		defer c.mu.Unlock()
		t = c.tenants[call.stackitScope]
		switch {
		case t.enabled:
			reply := stackitStatus(http.StatusOK, t.project)
			return t, &reply
		case t.enabling:
			reply := stackitProblem(http.StatusConflict, "project.create_conflict", "Two concurrent calls try to create the same project")
			return t, &reply
		}
		t.enabling = true
		return t, nil
	}
	t, done := begin()
	if done != nil {
		return *done
	}
	if c.options.Enabling != nil {
		c.options.Enabling(call.Context(), call.project, call.region)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t.enable()
	return stackitStatus(http.StatusCreated, t.project)
}

// enable begins a new account.
func (t *stackitTenant) enable() {
	*t = stackitTenant{
		stackitScope: t.stackitScope,
		enabled:      true,
		account:      randomString("123456789", 1) + randomString("0123456789", 19),
		groups:       map[string]*stackitGroup{},
	}
}

// disableService takes the credentials groups and their keys along.
func (c *Stackit) disableService(call *stackitCall) stackitReply {
	return c.withTenant(call.stackitScope, func(t *stackitTenant) stackitReply {
		if t.complianceLock {
			return stackitProblem(http.StatusConflict, "project.compliance_lock", "The project has a compliance lock")
		}
		if len(c.stores[t.region].OwnedBuckets(t.account)) > 0 {
			return stackitProblem(http.StatusUnprocessableEntity, "project.not_empty", "The project still has buckets")
		}
		for _, g := range t.groups {
			for _, k := range g.keys {
				c.s3Keys.remove(k.accessKey)
			}
		}
		*t = stackitTenant{stackitScope: t.stackitScope}
		return stackitStatus(http.StatusOK, t.project)
	})
}

type complianceLockBody struct {
	Project          string `json:"project"`
	MaxRetentionDays int    `json:"maxRetentionDays"`
}

func complianceLock(status int, t *stackitTenant) stackitReply {
	return stackitReply{status, complianceLockBody{t.project, maxRetentionDays}}
}

func noComplianceLock(status int) stackitReply {
	return stackitProblem(status, "compliance_lock.not_found", "The project has no compliance lock")
}

func (c *Stackit) createComplianceLock(call *stackitCall) stackitReply {
	return c.withTenant(call.stackitScope, func(t *stackitTenant) stackitReply {
		if t.complianceLock {
			return stackitProblem(http.StatusConflict, "compliance_lock.already_exists", "The project has a compliance lock already")
		}
		t.complianceLock = true
		return complianceLock(http.StatusCreated, t)
	})
}

func (c *Stackit) getComplianceLock(call *stackitCall) stackitReply {
	return c.withTenant(call.stackitScope, func(t *stackitTenant) stackitReply {
		if !t.complianceLock {
			return noComplianceLock(http.StatusNotFound)
		}
		return complianceLock(http.StatusOK, t)
	})
}

func (c *Stackit) deleteComplianceLock(call *stackitCall) stackitReply {
	return c.withTenant(call.stackitScope, func(t *stackitTenant) stackitReply {
		if !t.complianceLock {
			return noComplianceLock(http.StatusNotFound)
		}
		store := c.stores[t.region]
		for _, name := range store.OwnedBuckets(t.account) {
			// A bucket that has gone meanwhile holds the lock no more than one without.
			if lock, err := store.BucketLock(name, t.account); err == nil && lock.Enabled {
				return stackitProblem(http.StatusConflict, "compliance_lock.in_use", "The project still has buckets with object lock")
			}
		}
		t.complianceLock = false
		return complianceLock(http.StatusOK, t)
	})
}

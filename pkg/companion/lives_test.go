package companion

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// life is a part of the lives of users. It needs only the first ones before it.
type life struct {
	name       string
	first      bool
	everywhere bool // where Secrets are watched
	run        func(p *party) error
}

func lives() []life {
	return []life{
		{"env Secret", true, false, func(p *party) error {
			return p.sees(func() error { return p.there(p.secret("photos-env")) })
		}},
		{"told of success", true, false, func(p *party) error {
			return p.sees(func() error { return p.told("photos", ReasonProvisioned, 1) })
		}},
		{"env Secret healed", false, false, healed},
		{"failures counted", false, false, counted},
		{"wiped", false, false, wiped},
		{"claim found", false, false, func(p *party) error {
			bucket, _ := p.claim("found")
			return p.sees(func() error {
				_, err := p.companion.ClaimOf(p.Context(), bucket)
				return err
			})
		}},
		{"tenant found", false, false, func(p *party) error {
			return p.sees(func() error {
				_, err := p.companion.NamespaceLabels(p.Context(), p.ns)
				return err
			})
		}},
		{"Lease kept", false, false, kept},
		{"bucketclaims at once", false, false, unlisted("bucketclaims", lateClaim)},
		{"buckets at once", false, false, unlisted("buckets", lateClaim)},
		{"bucketaccesses at once", false, false, unlisted("bucketaccesses", func(p *party) func() error {
			p.patch(p.in("bucketaccesses")+"/plain", `"metadata": {"annotations": {%q: "plain-env"}}`, AnnotationEnvSecret)
			return func() error { return p.there(p.secret("plain-env")) }
		})},
		{"bucketaccessclasses at once", false, false, unlisted("bucketaccessclasses", func(p *party) func() error {
			p.patch(p.in("bucketaccesses")+"/plain", `"metadata": {"annotations": {%q: null}}`, AnnotationEnvSecret)
			p.patch(cosiPath+"/bucketaccessclasses/"+p.ns, `"parameters": {"envSecretSuffix": "-of-class"}`)
			return func() error { return p.there(p.secret("plain-of-class")) }
		})},
		{"events at once", false, false, unlisted("events", func(p *party) func() error {
			claim, _ := p.fails("failing", 1)
			return func() error { return p.told(claim, "FailedDeleteBucket", 1) }
		})},
		{"secrets at once", false, true, unlisted("secrets", func(p *party) func() error {
			p.patch(p.secret("photos-env"), `"stringData": {"MORE": "x"}`)
			return func() error { return p.has("photos-env", "MORE", false) }
		})},
		{"metrics", false, false, func(p *party) error {
			return p.sees(func() error {
				all := gathered(p.T, p.companion.config.Metrics)
				for _, want := range []string{"zuber_buckets any,Ready ", "zuber_accesses ReadWrite,Ready 2", "zuber_wipe_on_delete_allowed  1"} {
					if !slices.ContainsFunc(all, func(series string) bool { return strings.HasPrefix(series, want) }) {
						return fmt.Errorf("there is no %s in %q", want, all)
					}
				}
				return nil
			})
		}},
		{"env Secret moved", false, false, func(p *party) error {
			p.patch(p.in("bucketaccesses")+"/photos", `"metadata": {"annotations": {%q: "photos-moved"}}`, AnnotationEnvSecret)
			return p.sees(func() error { return p.gone(p.secret("photos-env")) })
		}},
	}
}

// healed has the user ask for another key in the env Secret.
func healed(p *party) error {
	p.patch(p.in("bucketaccesses")+"/photos", `"metadata": {"annotations": {%q: "bucket=BUCKET"}}`, AnnotationEnvKeys)
	return p.sees(func() error { return p.has("photos-env", "BUCKET", true) })
}

// fails has COSI tell a Bucket of a failure, so many times.
func (p *party) fails(name string, count int) (claim, event string) {
	p.Helper()
	bucket, uid := p.claim(name)
	event = "/api/v1/namespaces/" + clusterEvents + "/events/" + bucket
	now := time.Now().UTC().Format(time.RFC3339)
	p.post("/api/v1/namespaces/"+clusterEvents+"/events", `"kind": "Event", "metadata": {"name": %q},
"involvedObject": {"apiVersion": "objectstorage.k8s.io/v1alpha1", "kind": "Bucket", "name": %q, "uid": %q},
"type": "Warning", "reason": "FailedDeleteBucket", "message": "it holds objects", "count": %d, "firstTimestamp": %q, "lastTimestamp": %q`, bucket, bucket, uid, count, now, now)
	return name, event
}

// counted has a failure go on.
func counted(p *party) error {
	claim, event := p.fails("counted", 1)
	if err := p.sees(func() error { return p.told(claim, "FailedDeleteBucket", 1) }); err != nil {
		return err
	}
	p.patch(event, `"count": 2, "lastTimestamp": %q`, time.Now().UTC().Add(time.Minute).Format(time.RFC3339))
	return p.sees(func() error { return p.told(claim, "FailedDeleteBucket", 2) })
}

// wiped has a user delete a claim with its data.
func wiped(p *party) error {
	bucket, _ := p.claim("wiped")
	p.patch(p.in("bucketclaims")+"/wiped", `"metadata": {"annotations": {%q: %q}}`, AnnotationWipeOnDelete, wipe)
	p.send(http.MethodDelete, p.in("bucketclaims")+"/wiped", "")
	p.send(http.MethodDelete, cosiPath+"/buckets/"+bucket, "")
	return p.sees(func() error {
		if !p.companion.WipeOnDelete(p.Context(), bucketID(bucket)) {
			return fmt.Errorf("the data of %s stays", bucket)
		}
		return nil
	})
}

// kept has the companion renew its Lease, or lose it and end.
func kept(p *party) error {
	const renewals = 2
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for p.server.count("update", "leases", http.StatusOK) < renewals {
		select {
		case err := <-p.ended:
			p.ended <- err
			return fmt.Errorf("%w: the companion has ended: %w", errMissed, err)
		case <-ticker.C:
		}
	}
	return nil
}

// lateClaim makes a claim, of whose bucket its user is to be told.
func lateClaim(p *party) func() error {
	name := fmt.Sprintf("late-%d", parties.Add(1))
	p.claim(name)
	return func() error { return p.told(name, ReasonProvisioned, 1) }
}

// unlisted waits for what a change is to bring about. It is missed if the companion
// has found out by asking for all there is of the resource, which it does ever
// less often.
func unlisted(resource string, change func(*party) (condition func() error)) func(*party) error {
	return func(p *party) error {
		before := p.server.count("list", resource, http.StatusOK)
		if err := p.sees(change(p)); err != nil {
			return err
		}
		if n := p.server.count("list", resource, http.StatusOK) - before; n > 0 {
			return fmt.Errorf("%w: %s were listed again", errMissed, resource)
		}
		return nil
	}
}

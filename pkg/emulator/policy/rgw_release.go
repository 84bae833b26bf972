package policy

// rgwRelease is where releases of the gateway read a policy differently. The
// zero value is Reef.
type rgwRelease struct {
	// actions are those that the release knows beyond rgwActions.
	actions []string
	// guardsNotPrincipal refuses an Allow with NotPrincipal, which otherwise
	// opens the bucket to the world.
	guardsNotPrincipal bool
	// tellsPublic takes an Allow for one user for what it is. Without it the
	// document counts as public.
	tellsPublic bool
}

// rgw returns the release of the gateway that the dialect is of, if of any.
func (d Dialect) rgw() (rgwRelease, bool) {
	switch d {
	case RGWReef:
		return rgwRelease{}, true
	case RGWTentacle:
		return rgwRelease{
			actions:            []string{"s3:GetObjectAttributes"},
			guardsNotPrincipal: true,
			tellsPublic:        true,
		}, true
	case StorageGRID:
	}
	return rgwRelease{}, false
}

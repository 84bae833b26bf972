package objectstore

import (
	"encoding/xml"
	"net/http"
	"slices"
	"strings"
)

// permission is a set of ACL permissions.
type permission uint8

const (
	permRead permission = 1 << iota
	permWrite
	permReadACP
	permWriteACP

	permFull = permRead | permWrite | permReadACP | permWriteACP
)

const (
	groupAll           = "http://acs.amazonaws.com/groups/global/AllUsers"
	groupAuthenticated = "http://acs.amazonaws.com/groups/global/AuthenticatedUsers"
)

// grant gives a permission to a user or, when group is set, to a group.
type grant struct {
	uid   string
	name  string // display name of the user
	group string
	perm  permission
}

func (g grant) same(o grant) bool {
	return g.uid == o.uid && g.group == o.group && g.perm == o.perm
}

// acl is the access control list of a bucket or an object.
type acl struct {
	grants []grant
}

// allows tells whether the list gives who all of perm. The owner may always read and write the list
// itself, whatever it says.
func (a acl) allows(owner Identity, who caller, perm permission, ignorePublic bool) bool {
	var have permission
	if !who.anonymous && who.UID == owner.UID {
		have = permReadACP | permWriteACP
	}
	for _, g := range a.grants {
		switch {
		case g.group == "":
			if !who.anonymous && g.uid == who.UID {
				have |= g.perm
			}
		case ignorePublic:
		case g.group == groupAll, g.group == groupAuthenticated && !who.anonymous:
			have |= g.perm
		}
	}
	return have&perm == perm
}

// public tells whether the list gives anything to a group.
func (a acl) public() bool {
	return slices.ContainsFunc(a.grants, func(g grant) bool { return g.group != "" })
}

// equal ignores the order of the grants.
func (a acl) equal(b acl) bool {
	if len(a.grants) != len(b.grants) {
		return false
	}
	for _, g := range a.grants {
		if !slices.ContainsFunc(b.grants, g.same) {
			return false
		}
	}
	return true
}

// cannedACL expands a canned ACL. bucketOwner matters to objects alone.
func cannedACL(name string, owner, bucketOwner Identity) (acl, *apiError) {
	grants := []grant{{uid: owner.UID, name: owner.DisplayName, perm: permFull}}
	switch name {
	case "", "private":
	case "public-read":
		grants = append(grants, grant{group: groupAll, perm: permRead})
	case "public-read-write":
		grants = append(grants, grant{group: groupAll, perm: permRead | permWrite})
	case "authenticated-read":
		grants = append(grants, grant{group: groupAuthenticated, perm: permRead})
	case "bucket-owner-read", "bucket-owner-full-control":
		perm := permFull
		if name == "bucket-owner-read" {
			perm = permRead
		}
		if bucketOwner.UID != owner.UID {
			grants = append(grants, grant{uid: bucketOwner.UID, name: bucketOwner.DisplayName, perm: perm})
		}
	default:
		return acl{}, errInvalidArgument("")
	}
	return acl{grants: grants}, nil
}

// grantHeaders lists the headers that give permissions one by one.
func grantHeaders() map[string]permission {
	return map[string]permission{
		"X-Amz-Grant-Read":         permRead,
		"X-Amz-Grant-Write":        permWrite,
		"X-Amz-Grant-Read-Acp":     permReadACP,
		"X-Amz-Grant-Write-Acp":    permWriteACP,
		"X-Amz-Grant-Full-Control": permFull,
	}
}

// aclFromHeaders reads the ACL that a request asks for: grant headers if there are any, else the canned ACL.
// Where accounts own everything, they are ignored.
func (q *request) aclFromHeaders(owner, bucketOwner Identity) (acl, *apiError) {
	if q.store.traits.grid {
		return cannedACL("", owner, owner)
	}
	var list acl
	for name, perm := range grantHeaders() {
		for _, value := range q.http.Header.Values(name) {
			for entry := range strings.SplitSeq(value, ",") {
				g, err := q.parseGrantee(entry)
				if err != nil {
					return acl{}, err
				}
				g.perm = perm
				list.grants = append(list.grants, g)
			}
		}
	}
	canned := q.http.Header.Get("X-Amz-Acl")
	if len(list.grants) == 0 {
		return cannedACL(canned, owner, bucketOwner)
	}
	if canned != "" {
		return acl{}, errInvalidRequest("Specifying both Canned ACLs and Header Grants is not allowed")
	}
	return list, nil
}

// blocksACL tells whether the bucket's public access block refuses an upload with the ACL that it asks for.
func (q *request) blocksACL() bool {
	if q.bucket.pab == nil || !q.bucket.pab.BlockPublicAcls {
		return false
	}
	if !q.store.traits.tellsPublicACLs {
		return true
	}
	list, err := q.aclFromHeaders(q.owner(), q.bucket.owner)
	return err == nil && list.public()
}

// parseGrantee reads id="…" or uri="…".
func (q *request) parseGrantee(entry string) (grant, *apiError) {
	kind, value, found := strings.Cut(strings.TrimSpace(entry), "=")
	if !found {
		return grant{}, errInvalidArgument("")
	}
	value = strings.Trim(value, `"`)
	switch strings.ToLower(kind) {
	case "id":
		return q.userGrant(value)
	case "uri":
		if value == groupAll || value == groupAuthenticated {
			return grant{group: value}, nil
		}
	}
	return grant{}, errInvalidArgument("")
}

// userGrant makes a grant for a user, who must exist if that is known.
func (q *request) userGrant(uid string) (grant, *apiError) {
	if q.users == nil {
		return grant{uid: uid, name: uid}, nil
	}
	id, ok := q.users[uid]
	if !ok {
		return grant{}, q.explain(errInvalidArgument("Invalid id"), "Invalid CanonicalUser id")
	}
	return grant{uid: uid, name: id.DisplayName}, nil
}

// resolveUsers looks up every user that an ACL in the request may name. It comes before the store's lock,
// so that a Directory is free to lock itself while it calls the store.
func (q *request) resolveUsers() {
	d, ok := q.store.keys.(Directory)
	if !ok {
		return
	}
	q.users = make(map[string]Identity)
	find := func(uid string) {
		if id, ok := d.User(uid); ok {
			q.users[uid] = id
		}
	}
	for name := range grantHeaders() {
		for _, value := range q.http.Header.Values(name) {
			for entry := range strings.SplitSeq(value, ",") {
				if _, uid, found := strings.Cut(strings.TrimSpace(entry), "="); found {
					find(strings.Trim(uid, `"`))
				}
			}
		}
	}
	var in accessControlPolicyXML
	if strings.HasSuffix(q.operation, "Acl") && parseDocument(q.body, &in) == nil {
		for _, g := range in.ACL.Grants {
			find(g.Grantee.ID)
		}
	}
}

// permissionWords lists the words of the XML form; a full set comes first so that it is written as one word.
func permissionWords() []struct {
	word string
	perm permission
} {
	return []struct {
		word string
		perm permission
	}{
		{"FULL_CONTROL", permFull},
		{"READ", permRead},
		{"WRITE", permWrite},
		{"READ_ACP", permReadACP},
		{"WRITE_ACP", permWriteACP},
	}
}

type granteeXML struct {
	XSI         string `xml:"xmlns:xsi,attr,omitempty"`
	Type        string `xml:"xsi:type,attr,omitempty"`
	ID          string `xml:"ID,omitempty"`
	DisplayName string `xml:"DisplayName,omitempty"`
	URI         string `xml:"URI,omitempty"`
}

type grantXML struct {
	Grantee    granteeXML `xml:"Grantee"`
	Permission string     `xml:"Permission"`
}

type accessControlPolicyXML struct {
	XMLName xml.Name `xml:"AccessControlPolicy"`
	NS      string   `xml:"xmlns,attr,omitempty"`
	Owner   ownerXML `xml:"Owner"`
	ACL     struct {
		Grants []grantXML `xml:"Grant"`
	} `xml:"AccessControlList"` // there even when empty
}

func renderACL(owner Identity, list acl) (*reply, *apiError) {
	out := accessControlPolicyXML{NS: xmlns, Owner: ownerOf(owner)}
	for _, g := range list.grants {
		rest := g.perm
		for _, w := range permissionWords() {
			if rest&w.perm != w.perm {
				continue
			}
			rest &^= w.perm
			grantee := granteeXML{XSI: "http://www.w3.org/2001/XMLSchema-instance", Type: "Group", URI: g.group}
			if g.group == "" {
				grantee.Type, grantee.ID, grantee.DisplayName = "CanonicalUser", g.uid, g.name
			}
			out.ACL.Grants = append(out.ACL.Grants, grantXML{Grantee: grantee, Permission: w.word})
		}
	}
	return document(out)
}

// parseACL reads an AccessControlPolicy document for a resource of the given owner.
func (q *request) parseACL(owner Identity) (acl, *apiError) {
	var in accessControlPolicyXML
	if err := parseDocument(q.body, &in); err != nil {
		return acl{}, err
	}
	if in.Owner.ID != "" && in.Owner.ID != owner.UID {
		return acl{}, errAccessDenied()
	}
	var list acl
	for _, g := range in.ACL.Grants {
		parsed := grant{group: g.Grantee.URI}
		if parsed.group == "" {
			var err *apiError
			if parsed, err = q.userGrant(g.Grantee.ID); err != nil {
				return acl{}, err
			}
		}
		for _, w := range permissionWords() {
			if w.word == g.Permission {
				parsed.perm = w.perm
			}
		}
		switch parsed.group {
		case "", groupAll, groupAuthenticated:
		default:
			return acl{}, errInvalidArgument("")
		}
		if parsed.perm == 0 {
			return acl{}, errMalformedXML()
		}
		list.grants = append(list.grants, parsed)
	}
	return list, nil
}

// requestedACL reads the new ACL of a PutBucketAcl or PutObjectAcl: from the body, or else from the headers.
func (q *request) requestedACL(owner Identity) (acl, *apiError) {
	var list acl
	var err *apiError
	if len(q.body) > 0 {
		list, err = q.parseACL(owner)
	} else {
		list, err = q.aclFromHeaders(owner, q.bucket.owner)
	}
	if err != nil {
		return acl{}, err
	}
	if q.bucket.pab != nil && q.bucket.pab.BlockPublicAcls && list.public() {
		return acl{}, errAccessDenied()
	}
	return list, nil
}

func (q *request) getBucketACL() (*reply, *apiError) {
	if err := q.allowBucket("s3:GetBucketAcl"); err != nil {
		return nil, err
	}
	return renderACL(q.bucket.owner, q.bucket.acl)
}

func (q *request) putBucketACL() (*reply, *apiError) {
	q.addACLContext()
	if err := q.allowBucket("s3:PutBucketAcl"); err != nil {
		return nil, err
	}
	if q.bodyErr != nil {
		return nil, q.bodyErr
	}
	list, err := q.requestedACL(q.bucket.owner)
	if err != nil {
		return nil, err
	}
	q.bucket.acl = list
	return empty(http.StatusOK), nil
}

func (q *request) getObjectACL() (*reply, *apiError) {
	v, err := q.object(q.versioned("s3:GetObjectAcl", "s3:GetObjectVersionAcl"))
	if err != nil {
		return nil, err
	}
	return renderACL(v.owner, v.acl)
}

func (q *request) putObjectACL() (*reply, *apiError) {
	q.addACLContext()
	v, err := q.object(q.versioned("s3:PutObjectAcl", "s3:PutObjectVersionAcl"))
	if err != nil {
		return nil, err
	}
	if q.bodyErr != nil {
		return nil, q.bodyErr
	}
	list, err := q.requestedACL(v.owner)
	if err != nil {
		return nil, err
	}
	v.acl = list
	return empty(http.StatusOK), nil
}

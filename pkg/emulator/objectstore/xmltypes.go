package objectstore

import "encoding/xml"

// xmlns is the namespace of every S3 document. Requests are read whatever their namespace.
const xmlns = "http://s3.amazonaws.com/doc/2006-03-01/"

type ownerXML struct {
	ID          string `xml:"ID"`
	DisplayName string `xml:"DisplayName"`
}

func ownerOf(id Identity) ownerXML { return ownerXML{ID: id.UID, DisplayName: id.DisplayName} }

type bucketXML struct {
	Name         string `xml:"Name"`
	CreationDate string `xml:"CreationDate"`
}

type listBucketsXML struct {
	XMLName xml.Name `xml:"ListAllMyBucketsResult"`
	NS      string   `xml:"xmlns,attr"`
	Owner   ownerXML `xml:"Owner"`
	Buckets struct {
		Bucket []bucketXML `xml:"Bucket"`
	} `xml:"Buckets"` // there even when empty
}

type createBucketXML struct {
	XMLName            xml.Name `xml:"CreateBucketConfiguration"`
	LocationConstraint string   `xml:"LocationConstraint"`
}

type locationXML struct {
	XMLName xml.Name `xml:"LocationConstraint"`
	NS      string   `xml:"xmlns,attr"`
	Region  string   `xml:",chardata"`
}

type versioningXML struct {
	XMLName xml.Name `xml:"VersioningConfiguration"`
	NS      string   `xml:"xmlns,attr,omitempty"`
	Status  string   `xml:"Status,omitempty"`
}

type policyStatusXML struct {
	XMLName  xml.Name `xml:"PolicyStatus"`
	NS       string   `xml:"xmlns,attr"`
	IsPublic bool     `xml:"IsPublic"`
}

type publicAccessBlock struct {
	XMLName               xml.Name `xml:"PublicAccessBlockConfiguration"`
	NS                    string   `xml:"xmlns,attr,omitempty"`
	BlockPublicAcls       bool     `xml:"BlockPublicAcls"`
	IgnorePublicAcls      bool     `xml:"IgnorePublicAcls"`
	BlockPublicPolicy     bool     `xml:"BlockPublicPolicy"`
	RestrictPublicBuckets bool     `xml:"RestrictPublicBuckets"`
}

// tag is one tag of a bucket or an object.
type tag struct {
	Key   string `xml:"Key"`
	Value string `xml:"Value"`
}

type taggingXML struct {
	XMLName xml.Name `xml:"Tagging"`
	NS      string   `xml:"xmlns,attr,omitempty"`
	TagSet  struct {
		Tags []tag `xml:"Tag"`
	} `xml:"TagSet"` // there even when empty
}

// anyXML reads a document of which only the root's name matters.
type anyXML struct {
	XMLName xml.Name
}

type commonPrefixXML struct {
	Prefix string `xml:"Prefix"`
}

type objectXML struct {
	Key          string    `xml:"Key"`
	LastModified string    `xml:"LastModified"`
	ETag         string    `xml:"ETag"`
	Size         int       `xml:"Size"`
	StorageClass string    `xml:"StorageClass"`
	Owner        *ownerXML `xml:"Owner,omitempty"`
	Type         string    `xml:"Type,omitempty"`
}

// listObjectsXML serves both versions of the call; what one of them lacks stays nil.
type listObjectsXML struct {
	XMLName               xml.Name          `xml:"ListBucketResult"`
	NS                    string            `xml:"xmlns,attr"`
	Name                  string            `xml:"Name"`
	Prefix                string            `xml:"Prefix"`
	MaxKeys               int               `xml:"MaxKeys"`
	Delimiter             string            `xml:"Delimiter,omitempty"`
	IsTruncated           bool              `xml:"IsTruncated"`
	EncodingType          string            `xml:"EncodingType,omitempty"`
	Marker                *string           `xml:"Marker"`
	NextMarker            string            `xml:"NextMarker,omitempty"`
	KeyCount              *int              `xml:"KeyCount"`
	StartAfter            string            `xml:"StartAfter,omitempty"`
	ContinuationToken     string            `xml:"ContinuationToken,omitempty"`
	NextContinuationToken string            `xml:"NextContinuationToken,omitempty"`
	Contents              []objectXML       `xml:"Contents"`
	CommonPrefixes        []commonPrefixXML `xml:"CommonPrefixes"`
}

// versionXML is a Version or, by its XMLName, a DeleteMarker.
type versionXML struct {
	XMLName      xml.Name
	Key          string   `xml:"Key"`
	VersionID    string   `xml:"VersionId"`
	IsLatest     bool     `xml:"IsLatest"`
	LastModified string   `xml:"LastModified"`
	ETag         string   `xml:"ETag,omitempty"`
	Size         *int     `xml:"Size"`
	StorageClass string   `xml:"StorageClass,omitempty"`
	Owner        ownerXML `xml:"Owner"`
	Type         string   `xml:"Type,omitempty"`
}

type listVersionsXML struct {
	XMLName             xml.Name          `xml:"ListVersionsResult"`
	NS                  string            `xml:"xmlns,attr"`
	Name                string            `xml:"Name"`
	Prefix              string            `xml:"Prefix"`
	KeyMarker           string            `xml:"KeyMarker"`
	VersionIDMarker     string            `xml:"VersionIdMarker"`
	NextKeyMarker       string            `xml:"NextKeyMarker,omitempty"`
	NextVersionIDMarker string            `xml:"NextVersionIdMarker,omitempty"`
	MaxKeys             int               `xml:"MaxKeys"`
	Delimiter           string            `xml:"Delimiter,omitempty"`
	IsTruncated         bool              `xml:"IsTruncated"`
	EncodingType        string            `xml:"EncodingType,omitempty"`
	Versions            []versionXML      `xml:"Version"`
	CommonPrefixes      []commonPrefixXML `xml:"CommonPrefixes"`
}

type copyResultXML struct {
	XMLName      xml.Name // CopyObjectResult or CopyPartResult
	NS           string   `xml:"xmlns,attr"`
	LastModified string   `xml:"LastModified"`
	ETag         string   `xml:"ETag"`
}

type deleteXML struct {
	XMLName xml.Name          `xml:"Delete"`
	Quiet   bool              `xml:"Quiet"`
	Objects []deleteObjectXML `xml:"Object"`
}

type deleteObjectXML struct {
	Key       string `xml:"Key"`
	VersionID string `xml:"VersionId"`
}

type deletedXML struct {
	Key                   string `xml:"Key"`
	VersionID             string `xml:"VersionId,omitempty"`
	DeleteMarker          bool   `xml:"DeleteMarker,omitempty"`
	DeleteMarkerVersionID string `xml:"DeleteMarkerVersionId,omitempty"`
}

type deleteErrorXML struct {
	Key       string `xml:"Key"`
	VersionID string `xml:"VersionId"`
	Code      string `xml:"Code"`
	Message   string `xml:"Message"`
}

type deleteResultXML struct {
	XMLName xml.Name         `xml:"DeleteResult"`
	NS      string           `xml:"xmlns,attr"`
	Deleted []deletedXML     `xml:"Deleted"`
	Errors  []deleteErrorXML `xml:"Error"`
}

type initiateXML struct {
	XMLName  xml.Name `xml:"InitiateMultipartUploadResult"`
	NS       string   `xml:"xmlns,attr"`
	Bucket   string   `xml:"Bucket"`
	Key      string   `xml:"Key"`
	UploadID string   `xml:"UploadId"`
}

type completePartXML struct {
	PartNumber int    `xml:"PartNumber"`
	ETag       string `xml:"ETag"`
}

type completeXML struct {
	XMLName xml.Name          `xml:"CompleteMultipartUpload"`
	Parts   []completePartXML `xml:"Part"`
}

type completeResultXML struct {
	XMLName  xml.Name `xml:"CompleteMultipartUploadResult"`
	NS       string   `xml:"xmlns,attr"`
	Location string   `xml:"Location"`
	Bucket   string   `xml:"Bucket"`
	Key      string   `xml:"Key"`
	ETag     string   `xml:"ETag"`
}

type partXML struct {
	PartNumber   int    `xml:"PartNumber"`
	LastModified string `xml:"LastModified"`
	ETag         string `xml:"ETag"`
	Size         int    `xml:"Size"`
}

type listPartsXML struct {
	XMLName              xml.Name  `xml:"ListPartsResult"`
	NS                   string    `xml:"xmlns,attr"`
	Bucket               string    `xml:"Bucket"`
	Key                  string    `xml:"Key"`
	UploadID             string    `xml:"UploadId"`
	StorageClass         string    `xml:"StorageClass"`
	PartNumberMarker     int       `xml:"PartNumberMarker"`
	NextPartNumberMarker int       `xml:"NextPartNumberMarker"`
	MaxParts             int       `xml:"MaxParts"`
	IsTruncated          bool      `xml:"IsTruncated"`
	Owner                ownerXML  `xml:"Owner"`
	Parts                []partXML `xml:"Part"`
}

type uploadXML struct {
	Key          string   `xml:"Key"`
	UploadID     string   `xml:"UploadId"`
	Initiator    ownerXML `xml:"Initiator"`
	Owner        ownerXML `xml:"Owner"`
	StorageClass string   `xml:"StorageClass"`
	Initiated    string   `xml:"Initiated"`
}

type listUploadsXML struct {
	XMLName            xml.Name          `xml:"ListMultipartUploadsResult"`
	NS                 string            `xml:"xmlns,attr"`
	Bucket             string            `xml:"Bucket"`
	Prefix             string            `xml:"Prefix"`
	KeyMarker          string            `xml:"KeyMarker"`
	UploadIDMarker     string            `xml:"UploadIdMarker"`
	NextKeyMarker      string            `xml:"NextKeyMarker,omitempty"`
	NextUploadIDMarker string            `xml:"NextUploadIdMarker,omitempty"`
	MaxUploads         int               `xml:"MaxUploads"`
	Delimiter          string            `xml:"Delimiter,omitempty"`
	IsTruncated        bool              `xml:"IsTruncated"`
	EncodingType       string            `xml:"EncodingType,omitempty"`
	Uploads            []uploadXML       `xml:"Upload"`
	CommonPrefixes     []commonPrefixXML `xml:"CommonPrefixes"`
}

type defaultRetentionXML struct {
	Mode  string `xml:"Mode"`
	Days  int    `xml:"Days,omitempty"`
	Years int    `xml:"Years,omitempty"`
}

type objectLockXML struct {
	XMLName xml.Name             `xml:"ObjectLockConfiguration"`
	NS      string               `xml:"xmlns,attr,omitempty"`
	Enabled string               `xml:"ObjectLockEnabled"`
	Default *defaultRetentionXML `xml:"Rule>DefaultRetention"`
}

type retentionXML struct {
	XMLName xml.Name `xml:"Retention"`
	NS      string   `xml:"xmlns,attr,omitempty"`
	Mode    string   `xml:"Mode"`
	Until   string   `xml:"RetainUntilDate"`
}

type legalHoldXML struct {
	XMLName xml.Name `xml:"LegalHold"`
	NS      string   `xml:"xmlns,attr,omitempty"`
	Status  string   `xml:"Status"`
}

package emulator

import (
	"fmt"
	"io"
)

const stackitDescription = `STACKIT Object Storage, emulated

  control plane     %[1]s
  token endpoint    %[2]s
  S3 in eu01        %[3]s
  S3 in eu02        %[4]s
  project           %[5]s
  foreign project   %[6]s

Get a token for ten minutes, make a credentials group and take its key into the shell:

  TOKEN=$(curl -sS -d grant_type=client_credentials -d client_id=%[7]s \
    -d client_assertion_type=%[8]s \
    -d client_assertion=%[9]s \
    %[2]s | sed -n 's/.*"access_token":"\([^"]*\)".*/\1/p')
  BASE=%[1]sv2/project/%[5]s/regions/eu01
  GROUP=$(curl -sS -H "Authorization: Bearer $TOKEN" --json '{"displayName":"demo"}' $BASE/credentials-group |
    sed -n 's/.*"credentialsGroupId":"\([^"]*\)".*/\1/p')
  eval "$(curl -sS -H "Authorization: Bearer $TOKEN" --json '{}' "$BASE/access-key?credentials-group=$GROUP" |
    sed -n 's/.*"accessKey":"\([^"]*\)","secretAccessKey":"\([^"]*\)".*/export AWS_ACCESS_KEY_ID=\1 AWS_SECRET_ACCESS_KEY=\2/p')"
  curl -sS -H "Authorization: Bearer $TOKEN" -X POST $BASE/bucket/demo

The service account's key, for the SDK and its tools:

  export STACKIT_SERVICE_ACCOUNT_KEY='%[10]s'

Faults, calls and state, with a fault to begin with:

  curl -sS %[1]s_emulator/
  curl -sS -d '{"operation":"CreateBucket","times":1,"status":503}' %[1]s_emulator/faults
`

func (c *Stackit) describe(w io.Writer) error {
	_, err := fmt.Fprintf(w, stackitDescription, c.APIURL, c.TokenURL, c.Endpoints[stackitEU01], c.Endpoints[stackitEU02],
		c.ProjectID, c.ForeignProjectID, c.FederationEmail, assertionWorkloadJWT, c.FederatedToken, c.ServiceAccountKey())
	return err
}

package emulator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
)

// maxInput bounds a control-plane request body, in bytes.
const maxInput = 1 << 20

// userInput is the body of a POST or PATCH; nil is absent.
type userInput struct {
	displayName *string
	tags        map[string]string
}

const (
	fieldBlank     = "This field may not be blank."
	fieldNull      = "This field may not be null."
	fieldNotString = "Not a valid string."
	// What the cloud does with a field it does not know is not known; a client of
	// the emulator learns of its mistake.
	fieldUnknown = "This field is not known."
)

// readUserInput reads a JSON or form body; a refusal is the answer to send.
func readUserInput(r *http.Request) (userInput, *cloudscaleReply) {
	header := r.Header.Get("Content-Type")
	mediaType, params, err := mime.ParseMediaType(header)
	if err != nil {
		mediaType = ""
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxInput+1))
	if err != nil {
		return refuse(detail(http.StatusBadRequest, "The request body cannot be read: %v", err))
	}
	if len(body) > maxInput {
		return refuse(detail(http.StatusRequestEntityTooLarge, "The request body is larger than %d bytes.", maxInput))
	}
	switch mediaType {
	case "application/json":
		return parseUserJSON(body)
	case "application/x-www-form-urlencoded":
		values, err := url.ParseQuery(string(body))
		if err != nil {
			return refuse(detail(http.StatusBadRequest, "Form parse error - %v", err))
		}
		return parseUserForm(values)
	case "multipart/form-data":
		values, err := parseMultipart(body, params["boundary"])
		if err != nil {
			return refuse(detail(http.StatusBadRequest, "Multipart form parse error - %v", err))
		}
		return parseUserForm(values)
	}
	return refuse(detail(http.StatusUnsupportedMediaType, "Unsupported media type %q in request.", header))
}

func refuse(r cloudscaleReply) (userInput, *cloudscaleReply) { return userInput{}, &r }

func parseUserJSON(body []byte) (userInput, *cloudscaleReply) {
	var in userInput
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		var wrongType *json.UnmarshalTypeError
		if errors.As(err, &wrongType) {
			return refuse(fieldError("non_field_errors", fmt.Sprintf("Invalid data. Expected a dictionary, but got %s.", wrongType.Value)))
		}
		return refuse(detail(http.StatusBadRequest, "JSON parse error - %v", err))
	}
	problems := map[string]string{}
	for name, raw := range members {
		var problem string
		switch name {
		case "display_name":
			in.displayName, problem = parseDisplayName(raw)
		case "tags":
			in.tags, problem = parseTags(raw)
		default:
			problem = fieldUnknown
		}
		if problem != "" {
			problems[name] = problem
		}
	}
	if len(problems) > 0 {
		return refuse(cloudscaleReply{http.StatusBadRequest, problems})
	}
	return in, nil
}

func parseDisplayName(raw json.RawMessage) (name *string, problem string) {
	if string(raw) == "null" {
		return nil, fieldNull
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return nil, fieldNotString
	}
	if strings.TrimSpace(s) == "" {
		return nil, fieldBlank
	}
	return &s, ""
}

func parseTags(raw json.RawMessage) (tags map[string]string, problem string) {
	if string(raw) == "null" {
		return nil, fieldNull
	}
	var values map[string]any
	if json.Unmarshal(raw, &values) != nil {
		return nil, "Expected a dictionary of items."
	}
	tags = make(map[string]string, len(values))
	for k, v := range values {
		s, ok := v.(string)
		if !ok {
			return nil, fieldNotString
		}
		tags[k] = s
	}
	return tags, ""
}

// parseUserForm takes tags as tags.<key>=<value>, the framework's form of a map.
func parseUserForm(values url.Values) (userInput, *cloudscaleReply) {
	var in userInput
	problems := map[string]string{}
	for name, v := range values {
		key, isTag := strings.CutPrefix(name, "tags.")
		value := v[len(v)-1]
		switch {
		case name == "display_name" && strings.TrimSpace(value) == "":
			problems[name] = fieldBlank
		case name == "display_name":
			in.displayName = &value
		case name == "tags":
			problems[name] = "Expected a dictionary of items."
		case isTag:
			if in.tags == nil {
				in.tags = map[string]string{}
			}
			in.tags[key] = value
		default:
			problems[name] = fieldUnknown
		}
	}
	if len(problems) > 0 {
		return refuse(cloudscaleReply{http.StatusBadRequest, problems})
	}
	return in, nil
}

// parseMultipart returns the plain fields of a form; files are ignored.
func parseMultipart(body []byte, boundary string) (url.Values, error) {
	form, err := multipart.NewReader(bytes.NewReader(body), boundary).ReadForm(maxInput)
	if err != nil {
		return nil, err
	}
	// maxInput keeps every part in memory, so there is nothing to remove.
	return form.Value, nil
}

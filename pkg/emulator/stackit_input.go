package emulator

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"
	"unicode/utf8"
)

// mediaType is a request's content type without its parameters, or "".
func mediaType(r *http.Request) string {
	t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return t
}

// readStackitBody reads a JSON object; a refusal is the answer to send. Members
// that the API does not know are ignored, as its framework does.
func readStackitBody(r *http.Request) (members map[string]json.RawMessage, refusal *stackitReply) {
	refuse := func(reply stackitReply) (map[string]json.RawMessage, *stackitReply) { return nil, &reply }
	body, err := io.ReadAll(io.LimitReader(r.Body, maxInput+1))
	if err != nil {
		return refuse(stackitRefusal("json_invalid", "JSON decode error", "body", 0))
	}
	if len(body) > maxInput {
		return refuse(stackitProblem(http.StatusRequestEntityTooLarge, "request.too_large", "The request body is larger than %d bytes", maxInput))
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return refuse(stackitRefusal("missing", "Field required", "body"))
	}
	if mediaType(r) != "application/json" {
		return refuse(notAnObject())
	}
	if err := json.Unmarshal(body, &members); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return refuse(stackitRefusal("json_invalid", "JSON decode error", "body", int(syntax.Offset)))
		}
		return refuse(notAnObject())
	}
	if members == nil {
		return refuse(stackitRefusal("missing", "Field required", "body"))
	}
	return members, nil
}

func notAnObject() stackitReply {
	return stackitRefusal("model_attributes_type", "Input should be a valid dictionary or object to extract fields from", "body")
}

// stringOfLength checks the length of a string in characters.
func stringOfLength(s string, least, most int, loc ...any) *stackitReply {
	plural := func(n int) string {
		if n == 1 {
			return "1 character"
		}
		return fmt.Sprintf("%d characters", n)
	}
	var reply stackitReply
	switch n := utf8.RuneCountInString(s); {
	case n < least:
		reply = stackitRefusal("string_too_short", "String should have at least "+plural(least), loc...)
	case n > most:
		reply = stackitRefusal("string_too_long", "String should have at most "+plural(most), loc...)
	default:
		return nil
	}
	return &reply
}

// displayNameOf reads the name of a new group.
func displayNameOf(members map[string]json.RawMessage) (name string, refusal *stackitReply) {
	raw, ok := members["displayName"]
	if !ok {
		reply := stackitRefusal("missing", "Field required", "body", "displayName")
		return "", &reply
	}
	if string(raw) == "null" || json.Unmarshal(raw, &name) != nil {
		reply := stackitRefusal("string_type", "Input should be a valid string", "body", "displayName")
		return "", &reply
	}
	return name, stringOfLength(name, 1, 32, "body", "displayName")
}

// The limits of the expiry of a key.
const (
	leastKeyLife     = time.Minute
	mostKeyLifeYears = 5
)

// expiryOf reads the expiry of a new key, in whole milliseconds; the zero time
// is never.
func expiryOf(members map[string]json.RawMessage, now time.Time) (expires time.Time, refusal *stackitReply) {
	raw, ok := members["expires"]
	if !ok || string(raw) == "null" {
		return time.Time{}, nil
	}
	refuse := func(kind, msg string) (time.Time, *stackitReply) {
		reply := stackitRefusal(kind, msg, "body", "expires")
		return time.Time{}, &reply
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return refuse("datetime_type", "Input should be a valid datetime")
	}
	expires, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return refuse("datetime_from_date_parsing", "Input should be a valid datetime or date")
	}
	expires = expires.UTC().Truncate(time.Millisecond)
	if expires.Before(now.Add(leastKeyLife)) || expires.After(now.AddDate(mostKeyLifeYears, 0, 0)) {
		return refuse("value_error", "Value error, the expiry must lie between one minute and five years ahead")
	}
	return expires, nil
}

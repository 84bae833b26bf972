package v1alpha2

// object is an object of the API server.
type object map[string]any

// at follows keys; it is nil where the path ends early.
func (o object) at(path ...string) any {
	var here any = map[string]any(o)
	for _, key := range path {
		m, _ := here.(map[string]any)
		here = m[key]
	}
	return here
}

func (o object) text(path ...string) string {
	text, _ := o.at(path...).(string)
	return text
}

func (o object) list(path ...string) []object {
	all, _ := o.at(path...).([]any)
	var objects []object
	for _, one := range all {
		m, _ := one.(map[string]any)
		objects = append(objects, m)
	}
	return objects
}

func (o object) ready() bool   { return o.at("status", "readyToUse") == true }
func (o object) deleted() bool { return o.at("metadata", "deletionTimestamp") != nil }

// parameters are the texts of a map.
func (o object) parameters(path ...string) map[string]string {
	m, _ := o.at(path...).(map[string]any)
	texts := map[string]string{}
	for key, value := range m {
		texts[key], _ = value.(string)
	}
	return texts
}

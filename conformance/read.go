package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
)

// ReadReport reads and validates a report's JSON. Fields that it does not know are an error.
func ReadReport(file string) (Report, error) {
	var r Report
	text, err := os.ReadFile(file)
	if err != nil {
		return r, fmt.Errorf("conformance: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		return r, fmt.Errorf("conformance: %s is no report: %w", file, err)
	}
	return r, r.Validate()
}

// Differences compares the statuses of two reports, case by case: "RS-007: was pass, is fail". Other servers, seeds and times are
// no difference.
func Differences(was, is *Report) []string {
	statuses := func(r *Report) map[string]Status {
		m := map[string]Status{}
		for _, c := range r.Cases {
			m[c.ID] = c.Status
		}
		return m
	}
	before, now := statuses(was), statuses(is)
	var list []string
	for _, c := range was.Cases {
		switch status, there := now[c.ID]; {
		case !there:
			list = append(list, fmt.Sprintf("%s: was %s, is not there", c.ID, c.Status))
		case status != c.Status:
			list = append(list, fmt.Sprintf("%s: was %s, is %s", c.ID, c.Status, status))
		}
	}
	for _, c := range is.Cases {
		if _, there := before[c.ID]; !there {
			list = append(list, fmt.Sprintf("%s: is new: %s", c.ID, c.Status))
		}
	}
	return list
}

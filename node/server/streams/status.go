package streams

import (
	"encoding/json"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// internalError is the final status of a command that we failed.
func internalError(err error) []byte {
	text, jsonErr := json.Marshal(metav1.Status{
		Status: metav1.StatusFailure, Reason: metav1.StatusReasonInternalError, Code: http.StatusInternalServerError,
		Message: "Internal error occurred: " + err.Error(),
	})
	if jsonErr != nil {
		return []byte(`{"status":"Failure"}`)
	}
	return text
}

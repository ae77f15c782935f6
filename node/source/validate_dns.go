package source

import (
	"net"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// The API's limits of dnsConfig.
const (
	maxNameservers = 3
	maxSearches    = 32
	maxSearchChars = 2048
)

// validateDNS refuses what would become other lines of resolv.conf than those
// that it says, and what the API server refuses.
func validateDNS(dns *corev1.PodDNSConfig, path *field.Path) field.ErrorList {
	if dns == nil {
		return nil
	}
	var errs field.ErrorList
	if n := len(dns.Nameservers); n > maxNameservers {
		errs = append(errs, field.TooMany(path.Child("nameservers"), n, maxNameservers))
	}
	for i, server := range dns.Nameservers {
		if net.ParseIP(server) == nil {
			errs = append(errs, field.Invalid(path.Child("nameservers").Index(i), server, "must be an IP address"))
		}
	}
	errs = append(errs, validateSearches(dns.Searches, path.Child("searches"))...)
	for i, option := range dns.Options {
		at := path.Child("options").Index(i)
		if option.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), "must not be empty"))
		}
		if oneWord(option.Name) && (option.Value == nil || oneWord(*option.Value)) {
			continue
		}
		errs = append(errs, field.Invalid(at, option.Name, "must hold no white space and no control characters"))
	}
	return errs
}

func validateSearches(searches []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if n := len(searches); n > maxSearches {
		errs = append(errs, field.TooMany(path, n, maxSearches))
	}
	if n := len(strings.Join(searches, " ")); n > maxSearchChars {
		errs = append(errs, field.TooLong(path, "", maxSearchChars))
	}
	for i, domain := range searches {
		if domain == "." {
			continue
		}
		for _, problem := range validation.IsDNS1123Subdomain(strings.TrimSuffix(domain, ".")) {
			errs = append(errs, field.Invalid(path.Index(i), domain, problem))
		}
	}
	return errs
}

func oneWord(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
}

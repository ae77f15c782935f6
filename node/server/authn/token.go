package authn

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/rest"

	"nodekit.dev/internal/clientlog"
	"nodekit.dev/node/server"
	"nodekit.dev/node/server/internal/review"
)

// Reviewer asks the API server about a token.
type Reviewer interface {
	// Review may block until ctx ends, and is called concurrently.
	Review(ctx context.Context, review *authenticationv1.TokenReview) (*authenticationv1.TokenReview, error)
}

// Reviews asks by a client of authentication.k8s.io/v1. log takes what client-go says
// meanwhile; nil: nobody reads it.
func Reviews(client rest.Interface, log *slog.Logger) Reviewer { return reviews{client, log} }

type reviews struct {
	client rest.Interface
	log    *slog.Logger
}

func (r reviews) Review(ctx context.Context, ask *authenticationv1.TokenReview) (*authenticationv1.TokenReview, error) {
	answer := &authenticationv1.TokenReview{}
	err := r.client.Post().Resource("tokenreviews").Body(ask).Do(clientlog.Context(ctx, r.log)).Into(answer)
	return answer, err
}

// TokenConfig are the settings of Tokens.
type TokenConfig struct {
	// CacheTTL is how long an answer counts; 0: it is asked for each time.
	CacheTTL time.Duration
	// Timeout bounds what a request waits for the API server.
	Timeout time.Duration
}

// DefaultTokens is the stock kubelet's: two minutes, and ten seconds.
func DefaultTokens() TokenConfig {
	return TokenConfig{CacheTTL: 2 * time.Minute, Timeout: 10 * time.Second}
}

// maxTokens bounds the answers kept: tokens are made up by whoever likes to.
const maxTokens = 4096

// Tokens knows clients by a bearer token, in the header Authorization or, for
// browsers, in a WebSocket subprotocol. Safe for concurrent use; use NewTokens.
type Tokens struct {
	cfg   TokenConfig
	ask   Reviewer
	key   []byte // of the hashes, so that nobody can make two tokens meet
	cache *review.Cache[answer]
}

// answer is what the API server said about one token.
type answer struct {
	user  server.User
	known bool
}

var (
	errInvalidToken = errors.New("invalid bearer token")
	errTwoTokens    = errors.New("multiple base64url.bearer.authorization tokens specified")
	errBadEncoding  = errors.New("invalid base64url.bearer.authorization token encoding")
	errNoProtocol   = errors.New("missing additional subprotocol")
)

// NewTokens checks the settings.
func NewTokens(cfg TokenConfig, ask Reviewer) (*Tokens, error) {
	if cfg.CacheTTL < 0 || cfg.Timeout <= 0 {
		return nil, fmt.Errorf("authn: CacheTTL %v must not be negative and Timeout %v must be positive", cfg.CacheTTL, cfg.Timeout)
	}
	key := make([]byte, sha256.Size)
	if _, err := rand.Read(key); err != nil {
		return nil, fmt.Errorf("authn: %w", err)
	}
	return &Tokens{cfg: cfg, ask: ask, key: key, cache: review.NewCache[answer](maxTokens)}, nil
}

// Authenticate implements server.Authenticator. The token is taken out of the
// request once it is known whose it is, so that no handler hands it on.
func (t *Tokens) Authenticate(r *http.Request) (server.User, bool, error) {
	token, strip, err := tokenOf(r)
	if err != nil || token == "" {
		return server.User{}, false, err
	}
	got, err := t.review(r.Context(), token)
	switch {
	case err != nil:
		return server.User{}, false, err
	case !got.known:
		return server.User{}, false, errInvalidToken
	}
	strip()
	return got.user, true, nil
}

func (t *Tokens) review(ctx context.Context, token string) (answer, error) {
	mac := hmac.New(sha256.New, t.key)
	_, _ = mac.Write([]byte(token)) // a hash never fails
	return t.cache.Get(ctx, string(mac.Sum(nil)), func(ctx context.Context) (answer, time.Duration, error) {
		ctx, cancel := context.WithTimeout(ctx, t.cfg.Timeout)
		defer cancel()
		got, err := review.Ask(ctx, func(ctx context.Context) (*authenticationv1.TokenReview, error) {
			return t.ask.Review(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}})
		})
		if err != nil {
			return answer{}, 0, fmt.Errorf("token review: %w", err)
		}
		if got.Status.Error != "" && !got.Status.Authenticated {
			return answer{}, 0, fmt.Errorf("token review: %s", got.Status.Error)
		}
		return answerOf(got.Status), t.cfg.CacheTTL, nil
	})
}

func answerOf(s authenticationv1.TokenReviewStatus) answer {
	if !s.Authenticated {
		return answer{}
	}
	user := server.User{Name: s.User.Username, UID: s.User.UID, Groups: s.User.Groups}
	for key, values := range s.User.Extra {
		if user.Extra == nil {
			user.Extra = map[string][]string{}
		}
		user.Extra[key] = values
	}
	return answer{user: user, known: true}
}

// tokenOf finds the token of a request, and how to take it out of there.
func tokenOf(r *http.Request) (token string, strip func(), err error) {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	token, _, _ = strings.Cut(rest, " ")
	if strings.EqualFold(scheme, "bearer") && token != "" {
		return token, func() { r.Header.Del("Authorization") }, nil
	}
	return protocolToken(r)
}

const (
	protocolHeader = "Sec-Websocket-Protocol"
	protocolPrefix = "base64url.bearer.authorization.k8s.io."
)

// protocolToken looks for a token among the subprotocols that a WebSocket
// client offers; there must be another one, to agree on.
func protocolToken(r *http.Request) (token string, strip func(), err error) {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return "", nil, nil
	}
	var others []string
	encoded, found := "", false
	for _, line := range r.Header.Values(protocolHeader) {
		for offer := range strings.SplitSeq(line, ",") {
			offer = strings.TrimSpace(offer)
			text, isToken := strings.CutPrefix(offer, protocolPrefix)
			switch {
			case !isToken:
				others = append(others, offer)
			case found:
				return "", nil, errTwoTokens
			default:
				encoded, found = text, true
			}
		}
	}
	if !found {
		return "", nil, nil
	}
	data, err := base64.RawURLEncoding.DecodeString(encoded)
	switch {
	case err != nil || !utf8.Valid(data) || len(data) == 0:
		return "", nil, errBadEncoding
	case len(others) == 0:
		return "", nil, errNoProtocol
	}
	return string(data), func() { r.Header.Set(protocolHeader, strings.Join(others, ",")) }, nil
}

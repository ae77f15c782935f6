package follow_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"nodekit.dev/node/objects"
	"nodekit.dev/node/objects/follow"
	"nodekit.dev/node/objects/internal/apitest"
)

const dbPath = "/api/v1/namespaces/shop/secrets/db"

func secret(value string) *corev1.Secret {
	return &corev1.Secret{Data: map[string][]byte{"key": []byte(value)}}
}

// bench follows the secret shop/db of a server in a bubble of fake time.
type bench struct {
	api     *apitest.API
	one     *follow.One[*corev1.Secret]
	changed int
}

func followSecret(t *testing.T, prepare func(*bench)) *bench {
	t.Helper()
	b := &bench{api: apitest.New()}
	prepare(b)
	b.one = follow.NewOne(follow.Options[*corev1.Secret]{
		Source: follow.Source{
			Client: b.api.Client(corev1.SchemeGroupVersion), Kind: "secret", Resource: "secrets", Namespace: "shop", Name: "db",
		},
		New:     func() *corev1.Secret { return &corev1.Secret{} },
		Final:   func(s *corev1.Secret) bool { return s.Immutable != nil && *s.Immutable },
		Changed: func() { b.changed++ },
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.one.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return b
}

// value is what Get says: the secret's, or "none" or "unreachable".
func (b *bench) value(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	s, err := b.one.Get(ctx)
	var missing *objects.NotFoundError
	var away *objects.UnreachableError
	switch {
	case errors.As(err, &missing):
		return "none"
	case errors.As(err, &away):
		return "unreachable"
	case err != nil:
		t.Fatal(err)
	}
	return string(s.Data["key"])
}

func (b *bench) want(t *testing.T, want string) {
	t.Helper()
	synctest.Wait()
	if got := b.value(t); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func (b *bench) wantChanges(t *testing.T, want int) {
	t.Helper()
	synctest.Wait()
	if b.changed != want {
		t.Errorf("told of %d changes, want %d", b.changed, want)
	}
}

func TestOneFollowsItsObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := followSecret(t, func(b *bench) { b.api.Put(dbPath, secret("1")) })
		b.want(t, "1")
		b.wantChanges(t, 0) // the first answer is no news
		pass(500 * time.Millisecond)
		b.api.Put(dbPath, secret("2"))
		b.wantChanges(t, 1)
		b.want(t, "2")
		b.api.Delete(dbPath)
		b.wantChanges(t, 2)
		b.want(t, "none")
		b.api.Put(dbPath, secret("3"))
		b.wantChanges(t, 3)
		b.want(t, "3")
		b.wantRequests(t, "GET "+dbPath, "WATCH /api/v1/namespaces/shop/secrets")
	})
}

func (b *bench) wantRequests(t *testing.T, want ...string) {
	t.Helper()
	if got := b.api.Requests(); !slices.Equal(got, want) {
		t.Errorf("requests %v, want %v", got, want)
	}
}

// What happens between the first answer and the watch is seen by the watch.
func TestOneMissesNothingBeforeItsWatch(t *testing.T) {
	old := func(a *apitest.API) { a.RefuseState() } // a server that can not tell the state first
	for name, prepare := range map[string]func(*apitest.API){"state first": func(*apitest.API) {}, "old server": old} {
		for what, change := range map[string]func(*bench){
			"2":    func(b *bench) { b.api.Put(dbPath, secret("2")) },
			"none": func(b *bench) { b.api.Delete(dbPath) },
			"3": func(b *bench) {
				b.api.Delete(dbPath)
				b.api.Put(dbPath, secret("3"))
			},
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := followSecret(t, func(b *bench) {
						prepare(b.api)
						b.api.Put(dbPath, secret("1"))
					})
					b.want(t, "1")
					change(b)
					b.want(t, "1")
					pass(500 * time.Millisecond)
					b.wantChanges(t, 1)
					b.want(t, what)
				})
			})
		}
	}
}

func TestOneAsksAnOldServerAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := followSecret(t, func(b *bench) {
			b.api.RefuseState()
			b.api.Put(dbPath, secret("1"))
		})
		b.want(t, "1")
		pass(time.Second)
		b.wantRequests(t, "GET "+dbPath, "WATCH /api/v1/namespaces/shop/secrets",
			"WATCH /api/v1/namespaces/shop/secrets", "GET "+dbPath)
	})
}

func TestOneThatIsNotThereAnyMoreSaysSoOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := followSecret(t, func(b *bench) { b.api.Put(dbPath, secret("1")) })
		b.want(t, "1")
		pass(time.Second)
		b.api.Delete(dbPath)
		b.want(t, "none")
		b.api.EndWatches()
		pass(time.Hour)
		b.want(t, "none")
		b.wantChanges(t, 1)
	})
}

func TestOneThatIsFinalAtOnceIsNeverWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		yes := true
		b := followSecret(t, func(b *bench) { b.api.Put(dbPath, &corev1.Secret{Immutable: &yes}) })
		b.want(t, "")
		pass(time.Minute)
		b.wantRequests(t, "GET "+dbPath)
	})
}

func TestOneThatIsMissingIsToldWhenItComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := followSecret(t, func(*bench) {})
		b.want(t, "none")
		before := time.Now()
		b.api.Put(dbPath, secret("1"))
		b.wantChanges(t, 1)
		b.want(t, "1")
		if waited := time.Since(before); waited != 0 {
			t.Errorf("it took %v", waited)
		}
	})
}

// A server's cache that is behind must not bring back what the object was.
func TestOneIsNotTakenBackByACacheThatLags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := followSecret(t, func(b *bench) {
			b.api.Put(dbPath, secret("old"))
			b.api.Put(dbPath, secret("new"))
			b.api.Lag(1)
		})
		b.want(t, "new")
		b.api.CatchUp()
		b.want(t, "new")
		b.wantChanges(t, 0)
	})
}

func TestOneSurvivesTheEndOfItsWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := followSecret(t, func(b *bench) { b.api.Put(dbPath, secret("1")) })
		b.want(t, "1")
		for _, change := range []func(){
			func() { b.api.Put(dbPath, secret("2")) },
			func() { b.api.Delete(dbPath) },
			func() { b.api.Put(dbPath, secret("3")) },
		} {
			b.api.EndWatches()
			change() // nobody watches now
			pass(time.Second)
		}
		b.want(t, "3")
		b.wantChanges(t, 3)
	})
}

func TestOneKeepsItsAnswerWhileTheServerIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := followSecret(t, func(b *bench) { b.api.Put(dbPath, secret("1")) })
		b.want(t, "1")
		b.api.Refuse(func(*http.Request) (int, string) { return -1, "connection refused" })
		b.api.EndWatches()
		pass(2 * time.Hour)
		b.want(t, "1")
		asked := len(b.api.Requests())
		if asked > 2*3600/7+20 {
			t.Errorf("asked %d times in two hours", asked)
		}
		b.api.Refuse(nil)
		b.api.Put(dbPath, secret("2"))
		pass(16 * time.Second)
		b.want(t, "2")
	})
}

func TestOneTellsWhyThereIsNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := followSecret(t, func(b *bench) {
			b.api.Put(dbPath, secret("1"))
			b.api.Refuse(func(*http.Request) (int, string) { return http.StatusInternalServerError, "InternalError" })
		})
		b.want(t, "unreachable")
		b.api.Refuse(nil)
		pass(16 * time.Second)
		b.wantChanges(t, 1) // who got the error wants to know
		b.want(t, "1")
	})
}

// The Node authorizer learns of a binding a little after the node.
func TestOneWaitsForTheAuthorizer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := followSecret(t, func(b *bench) {
			b.api.Put(dbPath, secret("1"))
			b.api.Refuse(func(*http.Request) (int, string) { return http.StatusForbidden, "Forbidden" })
		})
		time.AfterFunc(200*time.Millisecond, func() { b.api.Refuse(nil) })
		before := time.Now()
		if got := b.value(t); got != "1" {
			t.Errorf("got %q", got)
		}
		if waited := time.Since(before); waited > 500*time.Millisecond {
			t.Errorf("waited %v", waited)
		}
	})
}

func TestOneThatStaysForbidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := followSecret(t, func(b *bench) {
			b.api.Refuse(func(*http.Request) (int, string) { return http.StatusForbidden, "Forbidden" })
		})
		before := time.Now()
		b.want(t, "unreachable")
		if waited := time.Since(before); waited > 2*time.Second {
			t.Errorf("waited %v", waited)
		}
	})
}

func TestFinalOneIsNotWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		yes := true
		b := followSecret(t, func(b *bench) { b.api.Put(dbPath, secret("1")) })
		b.want(t, "1")
		s := secret("1")
		s.Immutable = &yes
		b.api.Put(dbPath, s)
		synctest.Wait()
		b.api.EndWatches() // the server notices that the client went
		synctest.Wait()
		if w := b.api.Watches(); len(w) > 0 {
			t.Errorf("still watched: %v", w)
		}
		b.want(t, "1")
	})
}

func TestGetIsBoundedByItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := follow.NewOne(follow.Options[*corev1.Secret]{Source: follow.Source{Kind: "secret", Namespace: "shop", Name: "db"}})
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("too long"))
		defer cancel()
		_, err := one.Get(ctx)
		if err == nil || err.Error() != `failed to fetch secret "shop/db": too long` {
			t.Errorf("%v", err)
		}
	})
}

// many follows the services of the namespace shop.
func followServices(t *testing.T, api *apitest.API, changed func(*corev1.Service)) *follow.Many[*corev1.Service] {
	t.Helper()
	many := follow.NewMany(follow.ManyOptions[*corev1.Service]{
		Source: follow.Source{
			Client: api.Client(corev1.SchemeGroupVersion), Kind: "service", Resource: "services", Namespace: "shop",
		},
		NewList: func() follow.List { return &corev1.ServiceList{} },
		Items: func(list follow.List) (out []*corev1.Service) {
			for _, s := range list.(*corev1.ServiceList).Items {
				out = append(out, &s)
			}
			return out
		},
		Changed: changed,
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		many.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return many
}

func names(t *testing.T, many *follow.Many[*corev1.Service]) []string {
	t.Helper()
	synctest.Wait()
	list, err := many.List(t.Context(), func(*corev1.Service) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range list {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return names
}

func TestManyFollowsItsSelection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New()
		put := func(namespace, name string) {
			api.Put("/api/v1/namespaces/"+namespace+"/services/"+name, &corev1.Service{})
		}
		put("shop", "a")
		put("other", "x")
		var told []string
		many := followServices(t, api, func(s *corev1.Service) { told = append(told, s.Name) })
		want := func(want ...string) {
			t.Helper()
			if got := names(t, many); !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		}
		want("a")
		put("shop", "b")
		want("a", "b")
		api.EndWatches()
		synctest.Wait()
		put("shop", "c")
		api.Delete("/api/v1/namespaces/shop/services/a")
		pass(time.Second)
		want("b", "c") // by a watch that went on where the other ended
		api.EndWatches()
		synctest.Wait()
		api.Delete("/api/v1/namespaces/shop/services/b")
		put("shop", "d")
		api.Forget()
		pass(5 * time.Second)
		want("c", "d") // by a new list
		if slices.Sort(told); !slices.Equal(told, []string{"a", "a", "b", "b", "c", "d"}) {
			t.Errorf("told of %v", told)
		}
	})
}

func TestManyTellsWhyThereIsNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := apitest.New()
		api.Refuse(func(*http.Request) (int, string) { return -1, "connection refused" })
		many := followServices(t, api, nil)
		var away *objects.UnreachableError
		if _, err := many.Get(t.Context(), "shop", "a"); !errors.As(err, &away) {
			t.Errorf("%v", err)
		}
		api.Refuse(nil)
		pass(20 * time.Second)
		var missing *objects.NotFoundError
		if _, err := many.Get(t.Context(), "shop", "a"); !errors.As(err, &missing) {
			t.Errorf("%v", err)
		}
	})
}

// pass lets the bubble's time go on.
func pass(d time.Duration) { <-time.After(d) }

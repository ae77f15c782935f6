package cluster

import (
	"fmt"

	"nodekit.dev/node/objects/apicache"
	"nodekit.dev/node/wire"
)

// Join makes a hand-wired agent a member of the cluster: of the parts that talk
// to the API server, those that no other option has set are made.
func Join(cfg Config) wire.Option {
	return func(p *wire.Parts) {
		p.Join = func(j wire.Joining) ([]wire.Part, error) {
			m := &member{cfg: cfg.Complete(j.Config), Joining: j}
			for _, fill := range []func() error{m.events, m.objects, m.csi, m.claims, m.pods, m.registration} {
				if err := fill(); err != nil {
					return nil, fmt.Errorf("cluster: %w", err)
				}
			}
			return m.runs, nil
		}
	}
}

// member fills in what is nil.
type member struct {
	wire.Joining
	cfg        Config
	connection *Connection // nil: nobody needed it so far
	runs       []wire.Part
}

// connect is called by those who need the API server.
func (m *member) connect() (_ *Connection, err error) {
	if m.connection == nil {
		if m.connection, err = Connect(m.cfg, m.ThisNode); err == nil {
			m.runs = append(m.runs, m.connection.Runs()...)
		}
	}
	return m.connection, err
}

func (m *member) events() error {
	if m.Parts.EventWriter != nil {
		return nil
	}
	c, err := m.connect()
	if err != nil {
		return err
	}
	recorder, runs, err := Events(m.cfg, c, m.ThisNode)
	m.Parts.EventWriter, m.runs = recorder, append(m.runs, runs...)
	return err
}

// objects makes one cache for all getters, if any is needed.
func (m *member) objects() error {
	p := m.Parts
	if p.Tokens == nil {
		c, err := m.connect()
		if err != nil {
			return err
		}
		p.Tokens = Tokens(c, m.Contents)
	}
	if p.ConfigMaps != nil && p.Secrets != nil && p.Services != nil && p.NodeGetter != nil && p.RuntimeClasses != nil &&
		(p.TrustBundles != nil || m.cfg.NoTrustBundles) && (p.PodCertificates != nil || m.cfg.NoPodCertificates) {
		return nil
	}
	c, err := m.connect()
	if err != nil {
		return err
	}
	cache, runs, err := Cache(m.cfg, c, p.EventWriter, m.Contents)
	if err != nil {
		return err
	}
	m.runs = append(m.runs, runs...)
	return m.getters(cache)
}

func (m *member) getters(cache *apicache.Cache) (err error) {
	p := m.Parts
	if p.ConfigMaps == nil {
		p.ConfigMaps = cache
	}
	if p.Secrets == nil {
		p.Secrets = cache
	}
	if p.Services == nil {
		p.Services = cache
	}
	if p.NodeGetter == nil {
		p.NodeGetter = cache
	}
	if p.TrustBundles == nil {
		p.TrustBundles = TrustBundles(m.cfg, cache)
	}
	if p.PodCertificates == nil {
		p.PodCertificates = PodCertificates(m.cfg, cache)
	}
	if p.RuntimeClasses == nil {
		p.RuntimeClasses, err = RuntimeClasses(cache)
	}
	return err
}

// csi makes what the CSI drivers of the node are asked and told about.
func (m *member) csi() error {
	if m.Parts.CSIDrivers != nil {
		return nil
	}
	c, err := m.connect()
	if err != nil {
		return err
	}
	objects, runs, err := CSIDrivers(m.cfg, c, m.ThisNode, m.Contents)
	if err != nil {
		return err
	}
	m.Parts.CSIDrivers, m.runs = objects, append(m.runs, runs...)
	return nil
}

func (m *member) claims() error {
	if m.Parts.Claims != nil {
		return nil
	}
	c, err := m.connect()
	if err != nil {
		return err
	}
	made, err := Claims(m.cfg, c, m.Parts.NodeGetter, m.ThisNode, m.Contents)
	if err != nil {
		return err
	}
	m.Parts.Claims = made
	runs, err := Expansion(m.cfg, c, m.Parts.EventWriter, m.Contents)
	m.runs = append(m.runs, runs...)
	return err
}

// pods makes what is told about pods, and the source that it is compared with.
func (m *member) pods() error {
	p := m.Parts
	if p.StatusWriter == nil {
		c, err := m.connect()
		if err != nil {
			return err
		}
		writer, runs, err := Statuses(m.cfg, c)
		if err != nil {
			return err
		}
		p.StatusWriter, m.runs = writer, append(m.runs, runs...)
	}
	if p.PodSource != nil {
		return nil
	}
	c, err := m.connect()
	if err != nil {
		return err
	}
	source, err := Pods(m.cfg, c, p.StatusWriter)
	p.PodSource = source
	return err
}

func (m *member) registration() error {
	p := m.Parts
	if p.Registration != nil {
		return nil
	}
	c, err := m.connect()
	if err != nil {
		return err
	}
	registrar, runs, err := Registrar(m.cfg, c, RegistrarParts{
		Runtime: p.Watcher.Status, Images: m.Images, PodCIDR: m.PodCIDR,
		Claims: p.Claims, Getter: p.NodeGetter, Events: p.EventWriter, Statuses: p.StatusWriter,
	})
	p.Registration, m.runs = registrar, append(m.runs, runs...)
	return err
}

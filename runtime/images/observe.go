package images

import "nodekit.dev/runtime"

// observers are all that is to be told about a request.
func (p *Puller) observers(req Request) [2]Observer { return [2]Observer{p.cfg.Observer, req.Observer} }

func (p *Puller) tellPresent(req Request, image runtime.ImageInfo) {
	for _, o := range p.observers(req) {
		if o.Present != nil {
			o.Present(req, image)
		}
	}
}

func (p *Puller) tellStarted(req Request) {
	for _, o := range p.observers(req) {
		if o.PullStarted != nil {
			o.PullStarted(req)
		}
	}
}

func (p *Puller) tellDone(req Request, done PullDone) {
	for _, o := range p.observers(req) {
		if o.PullDone != nil {
			o.PullDone(req, done)
		}
	}
}

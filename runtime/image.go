package runtime

// ImageInfo is one image as the runtime last reported it.
type ImageInfo struct {
	// ID is what the runtime calls the image; it is also the Ref that a
	// container of this image is created with.
	ID string
	// RepoTags and RepoDigests are the names the image is known by.
	RepoTags    []string
	RepoDigests []string
	// Size is in bytes on disk, as the runtime counts it.
	Size uint64
	// Pinned images must never be collected (k/k#108045): the runtime needs
	// them itself, such as the sandbox image.
	Pinned bool
	// User is the user name the image asks for, UID the numeric user; at most
	// one of them is set.
	User string
	UID  *int64
}

// ImageAuth are the credentials of one registry. The zero value is anonymous.
type ImageAuth struct {
	Username      string
	Password      string
	Auth          string // base64 of user:password
	ServerAddress string
	IdentityToken string
	RegistryToken string
}

// ImageSpec names an image as the image service takes it.
type ImageSpec struct {
	// Image is a reference with a tag or digest, or an image ID.
	Image string
	// RuntimeHandler is the pod's handler, for runtimes that keep images per
	// handler; empty: default.
	RuntimeHandler string
	Annotations    map[string]string
}

// ImagePull asks the image service for one pull.
type ImagePull struct {
	Spec ImageSpec
	Auth ImageAuth
	// Sandbox is the configuration of the pod that the image is for; runtimes
	// take the cgroup parent and the labels from it.
	Sandbox SandboxConfig
}

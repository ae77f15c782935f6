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

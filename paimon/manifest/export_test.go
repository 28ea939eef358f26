package manifest

// The writers with a chosen codec, for comparing with files of other codecs.
var (
	WriteManifestCodec = writeManifest
	WriteListCodec     = writeList
)

// The schema texts of written files.
const (
	ManifestSchema = manifestSchema
	ListSchema     = listSchema
)

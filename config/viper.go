package config

import (
	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/viper"
)

// decode lays the layers over the values in into, each over the layers before it. A layer
// without a key leaves that key's value unchanged. A list replaces a list.
//
// Each call has its own viper. The values have their settings' types already (see
// file.value), so decode converts nothing.
func decode(into any, layers ...map[string]any) error {
	v := viper.NewWithOptions(viper.KeyDelimiter("::"))
	for _, layer := range layers {
		if err := v.MergeConfigMap(clone(layer)); err != nil {
			return err
		}
	}
	return v.UnmarshalExact(into, func(c *mapstructure.DecoderConfig) {
		c.TagName = "yaml"
		c.SquashTagOption = "inline"
		c.WeaklyTypedInput = false
		c.DecodeHook = nil
	})
}

// clone copies a layer with all its mappings, because viper merges the later layers into
// the mappings of the first one.
func clone(layer map[string]any) map[string]any {
	copied := make(map[string]any, len(layer))
	for key, value := range layer {
		if inner, ok := value.(map[string]any); ok {
			value = clone(inner)
		}
		copied[key] = value
	}
	return copied
}

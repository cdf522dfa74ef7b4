package config

import (
	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/viper"
)

// decode lays the layers over what into holds already, the last one uppermost.
// A layer that lacks a key leaves what is below; a list replaces a list.
//
// Each call has a viper of its own. The values have their settings' types
// already (see file.value), so nothing is converted on the way.
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

// clone copies a layer as deep as its mappings go: viper merges the layers
// above into the mappings of the lowest one.
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

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
		if err := v.MergeConfigMap(layer); err != nil {
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

//! How the config says that the bytes of an input are cut into records.

use tailrace_config::Input;
use tailrace_inputs::options::{Framing, MultilineBy, MultilinePreset};

/// How an input's bytes are cut. An open chain of partial lines, or an open join, holds the watermark
/// back, so it spans at most half of what may be read beyond it.
pub(crate) fn frame_config(input: &Input, replay_bytes_max: u64) -> tailrace_frame::Config {
    use tailrace_frame::Format;
    let records = input.records();
    tailrace_frame::Config {
        format: match records.framing {
            Framing::Auto => Format::Auto,
            Framing::Json => Format::Json,
            Framing::Raw => Format::Raw,
            Framing::Container => Format::Container,
            Framing::Cri => Format::Cri,
            Framing::Docker => Format::Docker,
        },
        content: tailrace_frame::Content::Any,
        record_bytes_max: usize::try_from(records.max_record_bytes).unwrap_or(usize::MAX),
        chain_span_max: replay_bytes_max / 2,
        multiline: records
            .multiline
            .map(|multiline| multiline_of(&multiline.by)),
    }
}

/// Which lines are joined.
pub(crate) fn multiline_of(by: &MultilineBy) -> tailrace_frame::Multiline {
    use tailrace_frame::{Multiline, Preset};
    let preset = |preset: &MultilinePreset| match preset {
        MultilinePreset::Java => Preset::Java,
        MultilinePreset::Python => Preset::Python,
        MultilinePreset::Go => Preset::Go,
        MultilinePreset::Ruby => Preset::Ruby,
        MultilinePreset::Dotnet => Preset::Dotnet,
        MultilinePreset::Javascript => Preset::Javascript,
        MultilinePreset::Rust => Preset::Rust,
    };
    match by {
        MultilineBy::Presets(presets) => {
            Multiline::presets(&presets.iter().map(preset).collect::<Vec<_>>())
        }
        MultilineBy::Start(start) => Multiline::start(start.0.clone()),
    }
}

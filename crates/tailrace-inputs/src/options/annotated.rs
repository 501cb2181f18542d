//! What a pod may say of how its lines are read, in annotations: the values of `format` and `multiline` as texts. They come
//! from whoever may make a pod, so that they are short, and so is what is compiled of them.

use regex::bytes::RegexBuilder;

use super::multiline::{EXPRESSION_BYTES_MAX, MultilineBy, MultilinePreset, StartExpression};

/// The longest expression, in bytes.
const START_BYTES_MAX: usize = 256;
/// What its search may take at run time: less than in a config, because there may be many.
const SEARCH_BYTES_MAX: usize = 128 << 10;

/// What a container's lines are, behind the envelope of its runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineContent {
    /// JSON objects and text in any mixture.
    Auto,
    /// JSON objects. Any other line is malformed.
    Json,
    /// Text, never looked into.
    Raw,
}

impl LineContent {
    /// Reads the value of an annotation.
    ///
    /// # Errors
    ///
    /// What it may be.
    pub fn of_annotation(text: &str) -> Result<Self, String> {
        match text.trim() {
            "auto" => Ok(Self::Auto),
            "json" => Ok(Self::Json),
            "raw" => Ok(Self::Raw),
            _ => Err("`auto`, `json` or `raw`".to_owned()),
        }
    }
}

impl MultilineBy {
    /// Reads the value of an annotation. `None`: each line is a record.
    ///
    /// # Errors
    ///
    /// What it may be.
    pub fn of_annotation(text: &str) -> Result<Option<Self>, String> {
        let text = text.trim();
        if let Some(expression) = text.strip_prefix("start:") {
            return start(expression).map(|start| Some(Self::Start(start)));
        }
        if text == "none" {
            return Ok(None);
        }
        let names = text.split(',').map(str::trim);
        let presets: Option<Vec<_>> = names.map(MultilinePreset::named).collect();
        match presets {
            // One may stand there twice, and no more often than there are presets.
            Some(presets) if presets.len() <= MultilinePreset::CHOICES.len() => {
                Ok(Some(Self::Presets(presets)))
            }
            _ => Err(expected()),
        }
    }
}

impl MultilinePreset {
    /// The preset with this name.
    fn named(name: &str) -> Option<Self> {
        const ALL: [MultilinePreset; 7] = [
            MultilinePreset::Java,
            MultilinePreset::Python,
            MultilinePreset::Go,
            MultilinePreset::Ruby,
            MultilinePreset::Dotnet,
            MultilinePreset::Javascript,
            MultilinePreset::Rust,
        ];
        ALL.into_iter().find(|preset| preset.name() == name)
    }
}

fn start(expression: &str) -> Result<StartExpression, String> {
    if expression.is_empty() || expression.len() > START_BYTES_MAX {
        return Err(expected());
    }
    let built = RegexBuilder::new(expression)
        .size_limit(usize::try_from(EXPRESSION_BYTES_MAX).unwrap_or(usize::MAX))
        .dfa_size_limit(SEARCH_BYTES_MAX)
        .build();
    match built {
        Ok(regex) => Ok(StartExpression(regex)),
        Err(regex::Error::CompiledTooBig(_)) => {
            Err("a smaller regular expression: smaller repetitions, `[0-9]` for `\\d`".to_owned())
        }
        Err(_) => Err("a valid regular expression behind `start:`".to_owned()),
    }
}

fn expected() -> String {
    let names: Vec<String> = MultilinePreset::CHOICES
        .iter()
        .map(|choice| format!("`{}`", choice.name))
        .collect();
    format!(
        "{}, several of them with commas between, `none`, or `start:` and a regular expression of at most \
         {START_BYTES_MAX} bytes",
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, &str>) {
        let found = MultilineBy::of_annotation(text);
        match (&found, expected) {
            (Ok(None), Ok("none")) => {}
            (Ok(Some(MultilineBy::Start(start))), Ok(expected)) => {
                assert_eq!(start.0.as_str(), expected);
            }
            (Ok(Some(MultilineBy::Presets(presets))), Ok(expected)) => {
                let names: Vec<&str> = presets.iter().map(|preset| preset.name()).collect();
                assert_eq!(names.join("+"), expected);
            }
            (Err(error), Err(expected)) => assert!(error.contains(expected), "{error}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn multiline_is_presets_or_a_start() {
        for choice in MultilinePreset::CHOICES {
            check(choice.name, Ok(choice.name));
        }
        check(" java, go ", Ok("java+go"));
        check("none", Ok("none"));
        check("start:^[0-9]{4}-", Ok("^[0-9]{4}-"));
        // What stands there is text of the expression.
        check("start: x,java", Ok(" x,java"));
    }

    #[test]
    fn what_is_no_value_is_refused_with_what_may_be() {
        let many = ["java"; 100].join(",");
        let long = format!("start:{}", "a".repeat(257));
        for text in [
            "",
            "Java",
            "java,",
            "cobol",
            "start:",
            "\u{1b}[2J",
            &many,
            &long,
        ] {
            check(text, Err("`java`, `python`"));
        }
        check("start:(", Err("a valid regular expression"));
        check("start:\\pL{1000}", Err("a smaller regular expression"));
        check(
            "start:((a{30}){30}){30}",
            Err("a smaller regular expression"),
        );
    }

    #[test]
    fn format_is_one_of_three() {
        assert_eq!(LineContent::of_annotation("raw "), Ok(LineContent::Raw));
        assert_eq!(LineContent::of_annotation("json"), Ok(LineContent::Json));
        assert_eq!(LineContent::of_annotation("auto"), Ok(LineContent::Auto));
        for text in ["", "cri", "JSON", "json,raw"] {
            assert!(LineContent::of_annotation(text).is_err(), "{text}");
        }
    }
}

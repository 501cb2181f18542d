//! A config with one query: file input, OTLP output.

use std::fmt;
use std::path::PathBuf;

use tailrace_config::is_unsafe;

/// What the config says.
pub(super) struct ConfigText<'a> {
    pub(super) sql: &'a str,
    /// The log file; an example if there is none.
    pub(super) file: Option<PathBuf>,
    pub(super) format: Option<&'a str>,
    pub(super) multiline: &'a [String],
}

impl fmt::Display for ConfigText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.as_ref().and_then(|file| file.to_str());
        let include = file.map_or_else(|| "/var/log/app/*.log".to_owned(), literal_glob);
        writeln!(
            f,
            "data_dir: /var/lib/tailrace            # where progress is kept\n"
        )?;
        writeln!(f, "pipelines:\n  app:\n    input:\n      type: file")?;
        writeln!(f, "      include: [{}]", quoted(&include))?;
        if let Some(format) = self.format {
            writeln!(f, "      format: {format}")?;
        }
        if !self.multiline.is_empty() {
            let presets = self.multiline.join(", ");
            writeln!(f, "      multiline: {{preset: [{presets}]}}")?;
        }
        writeln!(f, "    transform: {}", block(self.sql.trim(), "      "))?;
        writeln!(f, "    output:\n      type: otlp")?;
        writeln!(
            f,
            "      endpoint: ${{OTEL_EXPORTER_OTLP_ENDPOINT:-http://localhost:4318}}"
        )
    }
}

/// A path as a glob that matches it alone.
fn literal_glob(path: &str) -> String {
    let escaped = path.chars().map(|c| match c {
        '[' | ']' | '*' | '?' | '{' | '}' => format!("[{c}]"),
        _ => c.to_string(),
    });
    escaped.collect()
}

/// A text as a block scalar of YAML, behind its key; one that cannot stand in a block in quotes.
fn block(text: &str, indent: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let is_odd = |c: char| c != '\n' && (is_unsafe(c) || c.is_control());
    // A block would lose the spaces of such a line.
    let is_blank = |line: &str| !line.is_empty() && line.trim().is_empty();
    if text.contains(is_odd) || text.lines().any(is_blank) {
        return quoted(&text);
    }
    let lines = dollars(&text);
    let lines = lines.lines().map(|line| match line {
        "" => "\n".to_owned(),
        _ => format!("\n{indent}{line}"),
    });
    format!("|{}", lines.collect::<String>())
}

/// A text between double quotes. YAML reads JSON's escapes.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-*".contains(c);
    if text.starts_with('/') && text.chars().all(plain) {
        return text.to_owned();
    }
    let json = serde_json::Value::from(dollars(text)).to_string();
    let escaped = json.chars().map(|c| match c {
        _ if !is_unsafe(c) => c.to_string(),
        '\u{10000}'.. => format!("\\U{:08x}", u32::from(c)),
        _ => format!("\\u{:04x}", u32::from(c)),
    });
    escaped.collect()
}

/// A `$` that is meant as such.
fn dollars(text: &str) -> String {
    text.replace('$', "$$")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_config_has_the_query_as_it_was_given() {
        let check = |sql: &str, file: Option<&str>| {
            let multiline = ["java".to_owned(), "go".to_owned()];
            let text = ConfigText {
                sql,
                file: file.map(PathBuf::from),
                format: Some("raw"),
                multiline: &multiline,
            };
            let text = text.to_string();
            let loaded = tailrace_config::load_text("t", &text, &|_| None);
            let loaded = loaded.unwrap_or_else(|error| panic!("{text}\n{error:?}"));
            let pipeline = &loaded.pipelines["app"];
            assert_eq!(pipeline.transform.text.trim(), sql.trim(), "{text}");
            let plans = tailrace_pipeline::prepare(&loaded);
            assert!(plans.is_ok(), "{text}\n{plans:?}");
            pipeline.inputs[0].files().map(|files| files.include)
        };
        check("SELECT * FROM logs", None);
        check(
            "  SELECT *\n\n    FROM logs -- ${HOME} $$ $x\n  WHERE a = '# : x'  ",
            None,
        );
        check("SELECT 'a\tb' AS \"x: y\" FROM logs", None);
        check("SELECT 'a\n   \n\u{202e}\u{e0001}' AS x FROM logs", None);
        check("SELECT 'a\u{2028}\u{1f600}' AS é\nFROM logs", None);
        let include = check("SELECT 1 AS a FROM logs", Some("/var/log/a b's [1]*.log"));
        assert_eq!(
            include,
            Some(vec!["/var/log/a b's [[]1[]][*].log".to_owned()])
        );
    }
}

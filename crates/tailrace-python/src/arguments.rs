//! What Python passes to a query, as the options of the engine.

use std::path::PathBuf;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use tailrace_query::{Bounds, Options, Type, severity_of, time_of, type_of};
use tailrace_schema::units::parse_size;

use crate::errors::refused;

/// The arguments of `tailrace.query` that are options of the engine.
pub(crate) struct Arguments<'a, 'py> {
    pub(crate) columns: Option<&'a Bound<'py, PyDict>>,
    pub(crate) since: Option<&'a Bound<'py, PyAny>>,
    pub(crate) until: Option<&'a Bound<'py, PyAny>>,
    pub(crate) level: Option<&'a Bound<'py, PyAny>>,
    pub(crate) memory_limit: Option<&'a Bound<'py, PyAny>>,
    pub(crate) threads: Option<usize>,
}

impl Arguments<'_, '_> {
    /// The options of an engine.
    ///
    /// # Errors
    ///
    /// An argument is not valid.
    pub(crate) fn options(&self, py: Python<'_>) -> PyResult<Options> {
        let named = |name: &str, text: String| refused(py, format!("{name}: {text}"));
        let mut options = Options {
            columns: self.columns()?,
            bounds: self.bounds(py)?,
            ..Options::default()
        };
        if let Some(limit) = self.memory_limit {
            let text = limit.str()?.to_string();
            let size = parse_size(&text).filter(|size| *size > 0);
            let size = size.ok_or_else(|| {
                named(
                    "memory_limit",
                    format!("`{text}` is no size, as \"512MiB\" is"),
                )
            })?;
            options.memory_bytes = usize::try_from(size).unwrap_or(usize::MAX);
        }
        match self.threads {
            Some(0) => return Err(named("threads", "at least 1 is needed".to_owned())),
            Some(threads) => options.partitions = threads,
            None => {}
        }
        Ok(options)
    }

    fn columns(&self) -> PyResult<Vec<(String, Type)>> {
        let Some(columns) = self.columns else {
            return Ok(Vec::new());
        };
        let column = |(name, ty): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            let (name, ty): (String, String) = (name.extract()?, ty.extract()?);
            let known = type_of(&ty);
            let known = known
                .map_err(|text| refused(columns.py(), format!("columns[\"{name}\"]: {text}")))?;
            Ok((name, known))
        };
        columns.iter().map(column).collect()
    }

    fn bounds(&self, py: Python<'_>) -> PyResult<Bounds> {
        let named = |name: &str, text: String| refused(py, format!("{name}: {text}"));
        let time = |name: &str, value: Option<&Bound<'_, PyAny>>| {
            let Some(value) = value else { return Ok(None) };
            let text = time_text(value)?;
            time_of(&text)
                .map(Some)
                .map_err(|why| named(name, format!("`{text}`: {why}")))
        };
        let (since, until) = (time("since", self.since)?, time("until", self.until)?);
        if let (Some(from), Some(to)) = (since, until)
            && from >= to
        {
            let text = "`until` is not after `since`: no record can be between them";
            return Err(refused(py, text.to_owned()));
        }
        let severity = |value: &Bound<'_, PyAny>| {
            let text = value.str()?.to_string();
            severity_of(&text).map_err(|why| named("level", format!("`{text}`: {why}")))
        };
        Ok(Bounds {
            since_ns: since,
            until_ns: until,
            severity_min: self.level.map(severity).transpose()?,
        })
    }
}

/// A time as the command line takes it, of a text, seconds since 1970, a `datetime`, a `date`, or the `timedelta` back from
/// now.
fn time_text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(back) = value.call_method0("total_seconds") {
        let milliseconds = (back.extract::<f64>()? * 1000.0).round();
        return Ok(format!("{milliseconds}ms"));
    }
    if !value.hasattr("isoformat")? {
        return Ok(value.str()?.to_string());
    }
    let text: String = value.call_method0("isoformat")?.extract()?;
    let has_clock = text.contains(['T', ':']);
    if has_clock && value.call_method0("utcoffset")?.is_none() {
        return Err(refused(
            value.py(),
            format!("{text} has no time zone: use datetime.now(timezone.utc), or astimezone()"),
        ));
    }
    Ok(text)
}

/// The words that name files: one path, or some of them.
///
/// # Errors
///
/// One of them is no path, or is no Unicode.
pub(crate) fn words(paths: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<String>> {
    let Some(paths) = paths else {
        return Ok(Vec::new());
    };
    if paths.is_instance_of::<PyString>() || paths.hasattr("__fspath__")? {
        return Ok(vec![word(paths)?]);
    }
    let several = paths.try_iter().map_err(|_| {
        PyTypeError::new_err("paths: a path, or several of them, as str or os.PathLike")
    })?;
    several.map(|path| word(&path?)).collect()
}

fn word(path: &Bound<'_, PyAny>) -> PyResult<String> {
    let word: PathBuf = path.extract()?;
    word.into_os_string().into_string().map_err(|word| {
        let text = format!("{}: the path is no Unicode", word.display());
        refused(path.py(), text)
    })
}

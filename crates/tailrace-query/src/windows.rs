//! Windows that are made of named ones: `OVER (w ORDER BY a)` with `WINDOW w AS (PARTITION BY b)`. DataFusion 55 leaves the name out, and that of
//! `OVER w` where it stands in QUALIFY or ORDER BY.
//!
//! As SQL has it (ISO 9075-2, 7.15), the window in brackets takes PARTITION BY from the named one, and its ORDER BY if it has none itself. A
//! window with a frame lends itself to no other.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, Expr, NamedWindowDefinition, NamedWindowExpr, VisitorMut, WindowSpec, WindowType,
};
use tailrace_sql::walk::walk_mut;

use crate::error::{Error, place_of};

/// Writes windows out that are made of others.
///
/// # Errors
///
/// There is no window of a name, or it cannot be continued so.
pub(crate) fn written_windows(query: &mut ast::Query) -> Result<(), Error> {
    let mut windows = Windows::default();
    let _ = walk_mut(query, &mut windows);
    windows.error.map_or(Ok(()), Err)
}

#[derive(Default)]
struct Windows {
    /// Those that the SELECT has names for, of each query around.
    known: Vec<Vec<NamedWindowDefinition>>,
    error: Option<Error>,
}

impl Windows {
    /// Makes a window whole.
    fn complete(
        &mut self,
        spec: &mut WindowSpec,
        known: &[NamedWindowDefinition],
    ) -> ControlFlow<()> {
        match completed(spec, known) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.error = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}

impl VisitorMut for Windows {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut ast::Query) -> ControlFlow<()> {
        self.known.push(Vec::new());
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut ast::Query) -> ControlFlow<()> {
        self.known.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut ast::Select) -> ControlFlow<()> {
        let mut known: Vec<NamedWindowDefinition> = Vec::new();
        for definition in &mut select.named_window {
            if let NamedWindowExpr::WindowSpec(spec) = &mut definition.1 {
                self.complete(spec, &known)?;
            }
            known.push(definition.clone());
        }
        if let Some(last) = self.known.last_mut() {
            *last = known;
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let Expr::Function(called) = expr else {
            return ControlFlow::Continue(());
        };
        let Some(known) = self.known.last().cloned() else {
            return ControlFlow::Continue(());
        };
        match &mut called.over {
            Some(WindowType::WindowSpec(spec)) => self.complete(spec, &known),
            Some(over @ WindowType::NamedWindow(_)) => {
                // DataFusion looks for its name in SELECT alone.
                if let WindowType::NamedWindow(name) = &*over
                    && let Some(spec) = named(name, &known)
                {
                    *over = WindowType::WindowSpec(spec.clone());
                }
                ControlFlow::Continue(())
            }
            None => ControlFlow::Continue(()),
        }
    }
}

fn completed(spec: &mut WindowSpec, known: &[NamedWindowDefinition]) -> Result<(), Error> {
    let Some(name) = spec.window_name.take() else {
        return Ok(());
    };
    let refused = |message: String, hint: &str| Error {
        place: place_of(&Expr::Identifier(name.clone())),
        hint: Some(hint.to_owned()),
        ..Error::usage(message)
    };
    let Some(base) = named(&name, known) else {
        let hint = "WINDOW name AS (...) behind WHERE, GROUP BY and HAVING gives a window a name";
        return Err(refused(format!("there is no window `{name}`"), hint));
    };
    let hint = "write a window of its own, without the name";
    if base.window_frame.is_some() {
        let hint = format!("write OVER {name} without brackets, or a window of its own");
        return Err(refused(
            format!("`{name}` has a frame, so that no other window can be made of it"),
            &hint,
        ));
    }
    if !spec.partition_by.is_empty() {
        return Err(refused(
            format!("PARTITION BY cannot stand beside `{name}`, which says what belongs together"),
            hint,
        ));
    }
    if !spec.order_by.is_empty() && !base.order_by.is_empty() {
        return Err(refused(format!("`{name}` has its own ORDER BY"), hint));
    }
    spec.partition_by.clone_from(&base.partition_by);
    if spec.order_by.is_empty() {
        spec.order_by.clone_from(&base.order_by);
    }
    Ok(())
}

/// The window of a name, which may be another name.
fn named<'k>(name: &ast::Ident, known: &'k [NamedWindowDefinition]) -> Option<&'k WindowSpec> {
    let at = known.iter().position(|it| it.0.value == name.value)?;
    match &known[at].1 {
        NamedWindowExpr::WindowSpec(spec) => Some(spec),
        NamedWindowExpr::NamedWindow(other) => named(other, &known[..at]),
    }
}

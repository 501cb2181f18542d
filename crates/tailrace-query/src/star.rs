//! Whether a query asks for all columns by `*`: then it matters which keys become columns.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, ExcludeSelectItem, SelectItem, Visitor, WildcardAdditionalOptions,
};
use tailrace_sql::walk::walk;

/// The columns that every `*` of a query leaves out. `None` if it has none.
pub(crate) fn left_out(query: &ast::Query) -> Option<Vec<String>> {
    let mut stars = Stars(None);
    let _ = walk(query, &mut stars);
    stars.0
}

struct Stars(Option<Vec<String>>);

impl Visitor for Stars {
    type Break = ();

    fn pre_visit_select(&mut self, select: &ast::Select) -> ControlFlow<()> {
        for item in &select.projection {
            if let SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) = item
            {
                let names = self.0.get_or_insert_default();
                names.extend(excluded(options));
            }
        }
        ControlFlow::Continue(())
    }
}

/// The columns that EXCLUDE and EXCEPT leave out.
pub(crate) fn excluded(options: &WildcardAdditionalOptions) -> Vec<String> {
    let exclude = match &options.opt_exclude {
        Some(ExcludeSelectItem::Single(name)) => std::slice::from_ref(name),
        Some(ExcludeSelectItem::Multiple(names)) => names,
        None => &[],
    };
    let parts = exclude.iter().filter_map(|name| name.0.last());
    let idents = parts.filter_map(ast::ObjectNamePart::as_ident);
    let except = options.opt_except.iter();
    let except = except.flat_map(|it| {
        [&it.first_element]
            .into_iter()
            .chain(&it.additional_elements)
    });
    idents
        .chain(except)
        .map(|ident| ident.value.clone())
        .collect()
}

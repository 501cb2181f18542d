// Sets the theme before the page is painted, so that it does not flash. Without a choice the system's is used.
(() => {
  try {
    const theme = localStorage.getItem('tailrace-theme');
    if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
  } catch {
    // Storage is forbidden: the system's theme it is.
  }
})();

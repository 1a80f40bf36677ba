/** The colour scheme of the page: that of the system, or one that is stored in this browser. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { T, THEMES } from '../texts.ts';
import { SelectField } from './fields.tsx';

const KEY = 'svc.theme';

const storedTheme = (): string => THEMES.find(([id]) => id === localStorage.getItem(KEY))?.[0] ?? '';

/** Call it before the page is drawn. */
export function applyTheme(theme = storedTheme()): void {
  document.documentElement.dataset['theme'] = theme;
}

export function selectTheme(theme: string): void {
  localStorage.setItem(KEY, theme);
  applyTheme(theme);
}

export function ThemeField(): JSX.Element {
  const [theme, setTheme] = useState(storedTheme);
  const select = (next: string): void => {
    selectTheme(next);
    setTheme(next);
  };
  return <SelectField label={T.theme} value={theme} options={THEMES} onValue={select} isInline />;
}

/** The editor as a part of the page: created once, with the text it starts from. */
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { TextMark, TomlEditor, TomlTools } from './toml-tools.ts';

interface TomlFieldProps {
  readonly tools: TomlTools;
  /** What the editor shows; another object replaces its text. What is typed is told by `onText` alone, so that nothing overtakes a person who types. */
  readonly shown: { readonly text: string };
  readonly onText: (text: string) => void;
  readonly mark: TextMark | undefined;
}

export function TomlField({ tools, shown, onText, mark }: TomlFieldProps): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  const editor = useRef<TomlEditor>(null);
  useEffect(() => {
    if (host.current === null) return undefined;
    const made = tools.createEditor(host.current, shown.text, onText);
    editor.current = made;
    return () => made.close();
  }, []);
  useEffect(() => editor.current?.replace(shown.text), [shown]);
  useEffect(() => editor.current?.show(mark), [mark]);
  return <div class="toml" ref={host} />;
}

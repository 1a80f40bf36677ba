/** The editor as a part of the page: created once, with the text it starts from. */
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { TextMark, TomlEditor, TomlTools } from './toml-tools.ts';

interface TomlFieldProps {
  readonly tools: TomlTools;
  readonly initial: string;
  readonly onText: (text: string) => void;
  readonly mark: TextMark | undefined;
}

export function TomlField({ tools, initial, onText, mark }: TomlFieldProps): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  const editor = useRef<TomlEditor>(null);
  useEffect(() => {
    if (host.current === null) return undefined;
    const made = tools.createEditor(host.current, initial, onText);
    editor.current = made;
    return () => made.close();
  }, []);
  useEffect(() => editor.current?.show(mark), [mark]);
  return <div class="toml" ref={host} />;
}

/**
 * The TOML editor as a part of the page. The page knows the editor by these types only, because it is loaded on demand.
 */
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { Table } from '../decide/patch.ts';

export interface TextMark {
  /** 1-based. */
  readonly line: number;
  readonly message: string;
}

interface TomlEditor {
  /** Marks an error in the text; undefined removes the mark. */
  show(mark: TextMark | undefined): void;
  /** Replaces the text in one undoable step. */
  replace(text: string): void;
  close(): void;
}

export interface TomlTools {
  write(document: Table): string;
  read(text: string): { readonly ok: true; readonly document: Table } | { readonly ok: false; readonly mark: TextMark };
  createEditor(parent: HTMLElement, text: string, onText: (text: string) => void): TomlEditor;
}

interface TomlFieldProps {
  readonly tools: TomlTools;
  /**
   * Another object replaces the editor's text. Typed text is only reported by `onText`, so that nothing overwrites it.
   */
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

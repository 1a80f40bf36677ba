/** What the editor offers to the page, which knows it by these types alone: it is loaded when somebody edits. */
import type { Table } from '../decide/patch.ts';

export interface TextMark {
  /** From 1. */
  readonly line: number;
  readonly message: string;
}

export interface TomlEditor {
  /** Marks a mistake in the text; undefined: there is none. */
  show(mark: TextMark | undefined): void;
  /** Replaces the text, as one step that can be undone. */
  replace(text: string): void;
  close(): void;
}

export interface TomlTools {
  write(document: Table): string;
  read(text: string): { readonly ok: true; readonly document: Table } | { readonly ok: false; readonly mark: TextMark };
  createEditor(parent: HTMLElement, text: string, onText: (text: string) => void): TomlEditor;
}

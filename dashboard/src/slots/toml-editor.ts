/**
 * The TOML editor and parser, loaded on demand: they are larger than the rest of the page. No other file imports them.
 */
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands';
import { bracketMatching, HighlightStyle, StreamLanguage, syntaxHighlighting } from '@codemirror/language';
import { toml } from '@codemirror/legacy-modes/mode/toml';
import { lintGutter, setDiagnostics } from '@codemirror/lint';
import { EditorState } from '@codemirror/state';
import { drawSelection, EditorView, keymap, lineNumbers } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { parse, stringify, TomlError } from 'smol-toml';
import { isTable } from '../decide/patch.ts';
import { T } from '../texts.ts';
import type { TomlTools } from './toml-field.tsx';

const COLORS = HighlightStyle.define([
  { tag: tags.comment, color: 'var(--muted)' },
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--pulling)' },
  { tag: tags.string, color: 'var(--ready)' },
  { tag: [tags.number, tags.bool, tags.atom], color: 'var(--starting)' },
]);

const LOOK = EditorView.theme({
  '&': { minHeight: '18rem', maxHeight: '70dvh', background: 'var(--sunken)', color: 'var(--ink)', fontSize: 'var(--text-s)' },
  // The parent element shows the focus: the gutter would cover parts of an outline.
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--mono)' },
  '.cm-content': { caretColor: 'var(--ink)' },
  '.cm-cursor': { borderLeftColor: 'var(--ink)' },
  '.cm-gutters': { background: 'var(--sunken)', border: '0', color: 'var(--muted)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    background: 'color-mix(in srgb, var(--accent) 30%, transparent)',
  },
  '.cm-tooltip': { background: 'var(--surface)', borderColor: 'var(--line)', color: 'var(--ink)' },
});

export const TOML: TomlTools = {
  write: (document) => stringify(document),
  read(text) {
    try {
      const document = parse(text);
      return { ok: true, document: isTable(document) ? document : {} };
    } catch (error) {
      if (!(error instanceof TomlError)) throw error;
      const [first = error.message] = error.message.replace(/^Invalid TOML document: /, '').split('\n');
      return { ok: false, mark: { line: error.line, message: first } };
    }
  },
  createEditor(parent, text, onText) {
    // The content security policy forbids `style` elements; a shadow tree makes the editor use constructed sheets.
    const root = parent.attachShadow({ mode: 'open' });
    const view = new EditorView({
      parent: root,
      root,
      state: EditorState.create({
        doc: text,
        extensions: [
          lineNumbers(),
          history(),
          drawSelection(),
          bracketMatching(),
          lintGutter(),
          StreamLanguage.define(toml),
          syntaxHighlighting(COLORS),
          LOOK,
          // Tab is not bound, so that keyboard users can leave the editor.
          keymap.of([...defaultKeymap, ...historyKeymap]),
          EditorView.contentAttributes.of({ 'aria-label': T.editorLabel }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) onText(update.state.doc.toString());
          }),
        ],
      }),
    });
    return {
      show(mark) {
        const { doc } = view.state;
        const line = mark === undefined ? undefined : doc.line(Math.min(Math.max(1, mark.line), doc.lines));
        const found =
          line === undefined || mark === undefined
            ? []
            : [{ from: line.from, to: line.to, severity: 'error' as const, message: mark.message }];
        view.dispatch(setDiagnostics(view.state, found));
      },
      replace(next) {
        if (next === view.state.doc.toString()) return;
        view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } });
      },
      close: () => view.destroy(),
    };
  },
};

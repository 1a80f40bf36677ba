/**
 * The patterns of the section "Language" that can be recognised without understanding a sentence. The option `patterns` of "house/language" in
 * `.oxlintrc.json` names those that are checked: "preposition", "doubled", "what-of-what", "columns", "period".
 */
import { pathInCheckout } from './modules.mjs';

const MAX_COLUMNS = 120;
const CHECKED = ['src/', 'dashboard/src/'];
const DIRECTIVE = /^\s*(?:oxlint|eslint)-disable/;
const FRAGMENT = /^(?:Of(?! course)|To whom|Within how|(?:At|By|For|From|In|On|With) (?:which|whom)|Whether what)\b/;

const SENTENCES = {
  doubled: [/\b(?:that|those) of the\b[^.]*?\b(?:that|those) of the\b/i, 'Name what is compared instead of writing "that of the" twice'],
  'what-of-what': [/\bwhat is\b[^.]*?\bof what\b/i, 'Use nouns instead of "what is … of what"'],
};

export const language = {
  meta: {
    type: 'suggestion',
    docs: { description: 'Comments and messages as engineers write them' },
    schema: [{ type: 'object', properties: { patterns: { type: 'array', items: { type: 'string' } } } }],
  },
  create(context) {
    const path = pathInCheckout(context.filename);
    if (!CHECKED.some((folder) => path?.startsWith(folder))) return {};
    const on = new Set(context.options[0].patterns);
    const sentences = Object.entries(SENTENCES).flatMap(([name, pattern]) => (on.has(name) ? [pattern] : []));
    const checkSentences = (node, text) => {
      for (const [pattern, message] of sentences) if (pattern.test(text)) context.report({ loc: node.loc, message });
    };
    const checkMessage = (node) => {
      if (on.has('period') && /[^.]\.$/.test(textOf(node))) context.report({ loc: node.loc, message: 'End a message without a period' });
    };
    return {
      Literal: (node) => checkSentences(node, textOf(node)),
      TemplateLiteral: (node) => checkSentences(node, textOf(node)),
      Property(node) {
        if (node.key.name === 'message') checkMessage(node.value);
      },
      NewExpression(node) {
        if (node.callee.name?.endsWith('Error') && node.arguments[0] !== undefined) checkMessage(node.arguments[0]);
      },
      Program() {
        for (const comment of context.sourceCode.getAllComments()) {
          const text = comment.value.replaceAll(/^[ \t]*\*+[ \t]?/gm, '').trim();
          checkSentences(comment, text);
          if (on.has('preposition') && FRAGMENT.test(text))
            context.report({ loc: comment.loc, message: 'Begin a comment with a subject or a verb, not with a preposition' });
          if (on.has('columns') && !DIRECTIVE.test(comment.value) && isWide(comment))
            context.report({ loc: comment.loc, message: `Wrap comments at ${MAX_COLUMNS} columns` });
        }
      },
    };
  },
};

function textOf(node) {
  if (node.type === 'TemplateLiteral') return node.quasis.map(({ value }) => value.raw).join('…');
  return typeof node.value === 'string' ? node.value : '';
}

function isWide({ loc, value }) {
  const lines = value.split('\n');
  return loc.end.column > MAX_COLUMNS || lines.some((line, index) => (index === 0 ? loc.start.column + 2 : 0) + line.length > MAX_COLUMNS);
}

/** One term for each concept, in names, comments and texts: the table is `glossary.mjs`. In tests, only file names are checked. */
import { findSynonyms } from './find-synonyms.mjs';
import { pathInCheckout } from './modules.mjs';

/** Where problems with the name of a file are reported. */
const FIRST_CHARACTER = { start: { line: 1, column: 0 }, end: { line: 1, column: 1 } };

export const glossaryRule = {
  meta: { type: 'suggestion', docs: { description: 'One term for each concept' }, schema: [] },
  create(context) {
    const path = pathInCheckout(context.filename);
    if (path === undefined) return {};
    const sentences = [];
    const reportPath = () => {
      for (const { message } of findSynonyms(path, () => true))
        context.report({ loc: FIRST_CHARACTER, message: `In the name of this file: ${message}` });
    };
    if (!path.startsWith('src/')) return { Program: reportPath };
    return {
      Literal: ({ range }) => sentences.push(range),
      TemplateElement: ({ range }) => sentences.push(range),
      'Program:exit'() {
        reportPath();
        const { sourceCode } = context;
        const ranges = [...sentences, ...sourceCode.getAllComments().map(({ range }) => range)];
        const isName = (index) => !ranges.some(([begin, end]) => begin <= index && index < end);
        for (const { index, length, message } of findSynonyms(sourceCode.text, isName)) {
          const loc = { start: sourceCode.getLocFromIndex(index), end: sourceCode.getLocFromIndex(index + length) };
          context.report({ loc, message });
        }
      },
    };
  },
};

/** An exception to a rule names the rule and the reason: `// oxlint-disable-next-line rule -- reason`. */
const DIRECTIVE = /^\s*(?:oxlint|eslint)-disable(?:-next-line|-line)?\b(.*)$/s;

export const reasonedExceptions = {
  meta: { type: 'problem', docs: { description: 'An exception names its rule and its reason' }, schema: [] },
  create(context) {
    return {
      Program() {
        for (const comment of context.sourceCode.getAllComments()) {
          const found = DIRECTIVE.exec(comment.value);
          if (found === null) continue;
          const [rules = '', reason = ''] = (found[1] ?? '').split(/\s--\s/);
          if (rules.trim() === '') context.report({ loc: comment.loc, message: 'Name the rule that this comment disables' });
          if (reason.trim().length < 8) context.report({ loc: comment.loc, message: 'Give the reason, after " -- "' });
        }
      },
    };
  },
};

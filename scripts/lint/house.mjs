/** The project's own lint rules, as an oxlint plugin. Tests in `test/house/` prove that each rule works. */
import { functionLength } from './function-length.mjs';
import { glossaryRule } from './glossary-rule.mjs';
import { importDirection } from './import-direction.mjs';
import { language } from './language.mjs';
import { noModuleState } from './no-module-state.mjs';
import { plainNames } from './plain-names.mjs';
import { pureDecide } from './pure-decide.mjs';
import { reasonedExceptions } from './reasoned-exceptions.mjs';
import { smallPlatform } from './small-platform.mjs';

// oxlint expects a plugin as the default export
export default {
  meta: { name: 'house' },
  rules: {
    'function-length': functionLength,
    glossary: glossaryRule,
    'import-direction': importDirection,
    language,
    'no-module-state': noModuleState,
    'plain-names': plainNames,
    'pure-decide': pureDecide,
    'reasoned-exceptions': reasonedExceptions,
    'small-platform': smallPlatform,
  },
};

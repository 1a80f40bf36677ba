/** The house's own lint rules, as an oxlint plugin. Every rule is shown to bite in `test/house/`. */
import { functionLength } from './function-length.mjs';
import { importDirection } from './import-direction.mjs';
import { noModuleState } from './no-module-state.mjs';
import { plainNames } from './plain-names.mjs';
import { pureDecide } from './pure-decide.mjs';
import { reasonedExceptions } from './reasoned-exceptions.mjs';

// oxlint takes a plugin as a default export
export default {
  meta: { name: 'house' },
  rules: {
    'function-length': functionLength,
    'import-direction': importDirection,
    'no-module-state': noModuleState,
    'plain-names': plainNames,
    'pure-decide': pureDecide,
    'reasoned-exceptions': reasonedExceptions,
  },
};

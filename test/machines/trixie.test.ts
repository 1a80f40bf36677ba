import { describeInstaller } from './install-suite.ts';

describeInstaller('trixie');

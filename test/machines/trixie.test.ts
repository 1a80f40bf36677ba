import { describeDocuments } from './doc-steps.ts';
import { describeHost } from './host-steps.ts';
import { describeHttps } from './https-steps.ts';
import { describeInstaller } from './install-suite.ts';

describeInstaller('trixie');
describeDocuments('trixie');
describeHost('trixie');
describeHttps('trixie');

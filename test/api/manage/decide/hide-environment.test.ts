import { expect, test } from '@jest/globals';
import { hideEnvironment } from '../../../../src/api/manage/decide/slot-view.ts';

test.each([
  [
    { env: { TOKEN: 'a' }, model: { default: 'm' } },
    { env: { TOKEN: '(hidden)' }, model: { default: 'm' } },
  ],
  [
    {
      pod: {
        containers: [
          {
            name: 'c',
            env: [
              { name: 'A', value: 'b' },
              { name: 'B', value_from: { secret: 's' } },
            ],
          },
        ],
      },
    },
    {
      pod: {
        containers: [
          {
            name: 'c',
            env: [
              { name: 'A', value: '(hidden)' },
              { name: 'B', value_from: { secret: 's' } },
            ],
          },
        ],
      },
    },
  ],
  [{ env: {} }, { env: {} }],
  [null, null],
])('%j', (document, shown) => expect(hideEnvironment(document)).toEqual(shown));

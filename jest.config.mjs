/** Jest in ESM mode. Node itself strips the types, so that tests run exactly the code that the program runs. */
export default {
  testEnvironment: 'node',
  extensionsToTreatAsEsm: ['.ts'],
  transform: { '\\.ts$': '<rootDir>/test/support/jest/strip-types.cjs' },
  testMatch: ['<rootDir>/test/**/*.test.ts'],
  modulePathIgnorePatterns: ['<rootDir>/toolboxes/', '<rootDir>/.svc/'],
  reporters: ['default', '<rootDir>/test/support/jest/closing-line-reporter.cjs'],
  testTimeout: 60_000,
  maxWorkers: 2,
  testSequencer: '<rootDir>/test/support/jest/long-suites-first.cjs',
  workerIdleMemoryLimit: '1GB',
};

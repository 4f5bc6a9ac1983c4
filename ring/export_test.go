package ring

const RaceEnabled = raceEnabled
